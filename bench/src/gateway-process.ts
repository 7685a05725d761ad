import { startGateway } from "@guidevane/gateway";
import { oneCluster } from "./inputs.ts";

/** A gateway process in front of the engine named on its command line, on its bootstrap snapshot. Tells its parent its address. */
const quiet = { info() {}, warn() {}, error: (fields: object, message: string) => console.error(message, fields) };
const fleet = await oneCluster([process.argv[2]!]);
const any = "127.0.0.1:0";
const gateway = await startGateway({ fleet, cluster: "c", listen: any, admin: any, logger: quiet });
process.send!({ url: gateway.url });
process.on("disconnect", () => process.exit());
