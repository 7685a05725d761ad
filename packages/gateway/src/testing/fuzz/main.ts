import { fuzzGateway } from "./fuzz-gateway.ts";

/** `npm run fuzz -- [SECONDS] [SEED]`. Ends with 1 where something broke, and says by which bytes. */

const [seconds = 60, seed = Math.floor(Math.random() * 2 ** 32)] = process.argv.slice(2).map(Number);
if (!(seconds > 0) || !Number.isInteger(seed)) {
  console.error("usage: npm run fuzz -- [SECONDS] [SEED]");
  process.exit(2);
}
console.log(`fuzz: ${seconds} s, seed ${seed}`);
const endsMs = performance.now() + seconds * 1000;
const report = await fuzzGateway({ seed, connections: 200, goOn: () => performance.now() < endsMs });
for (const complaint of report.complaints) console.error(complaint);
console.log(
  `${report.rounds} rounds, ${report.connections} connections, ${report.requests} requests at the engine, ` +
    `at most ${Math.round(report.memoryBytes / 1024 / 1024)} MB held, ${report.complaints.length} complaints (seed ${seed})`,
);
process.exit(report.complaints.length === 0 ? 0 : 1);
