// Benchmarks: `npm run bench -- <name> [--option=value]`. Figures are printed, never asserted; a ratio compares with a floor of the same run.
import { api } from './api.ts';
import { cluster } from './cluster/cluster.ts';
import { delivery } from './delivery/delivery.ts';
import { fleet } from './fleet/fleet.ts';
import { forge } from './forge/forge.ts';
import { lifecycle } from './lifecycle.ts';
import { many } from './many.ts';
import { remote } from './remote.ts';
import { render } from './render.ts';
import { scale } from './scale.ts';

const BENCHMARKS: Readonly<Record<string, (options: readonly string[]) => Promise<void>>> = {
  api,
  cluster,
  delivery,
  fleet,
  forge,
  lifecycle,
  many,
  remote,
  render,
  scale,
};

// Their Git servers listen on this machine.
process.env.SLUICE_ALLOW_GIT_HOST ??= '127.0.0.1';
const names = process.argv.slice(2).filter((word) => !word.startsWith('--'));
const options = process.argv.slice(2).filter((word) => word.startsWith('--'));
for (const name of names.length === 0 ? Object.keys(BENCHMARKS) : names) {
  const benchmark = BENCHMARKS[name];
  if (benchmark === undefined) {
    console.error(`there is no benchmark ${JSON.stringify(name)}; there are: ${Object.keys(BENCHMARKS).join(', ')}`);
    process.exitCode = 2;
    break;
  }
  console.log(`${name} (Node ${process.versions.node})\n`);
  await benchmark(options);
}
