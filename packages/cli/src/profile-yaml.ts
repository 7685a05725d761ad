import type { FittedProfile, SeededProfile } from "@guidevane/signals";
import { Document, isScalar, visit } from "yaml";

/** A profile file. A knot is one thing to a reader: on one line. */
export function profileYaml(profile: FittedProfile | SeededProfile): string {
  const document = new Document(profile);
  visit(document, {
    Seq(_key, node) {
      if (node.items.every(isScalar)) node.flow = true;
    },
  });
  return document.toString({ lineWidth: 120, flowCollectionPadding: false });
}
