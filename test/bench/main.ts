// Benchmarks: `npm run bench -- --help` lists them. Figures are printed, never asserted; a ratio compares with a floor of the same run.
import { api } from './api.ts';
import { type BenchmarkName, benchmarkHelp, unknownOptions } from './benchmarks.ts';
import { cluster } from './cluster/cluster.ts';
import { delivery } from './delivery/delivery.ts';
import { fleet } from './fleet/fleet.ts';
import { forge } from './forge/forge.ts';
import { lifecycle } from './lifecycle.ts';
import { many } from './many.ts';
import { remote } from './remote.ts';
import { render } from './render.ts';
import { scale } from './scale.ts';

const RUN: Readonly<Record<BenchmarkName, (options: readonly string[]) => Promise<void>>> = {
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

const words = process.argv.slice(2);
const options = words.filter((word) => word.startsWith('-'));
const named = words.filter((word) => !word.startsWith('-'));
const isName = (word: string): word is BenchmarkName => Object.hasOwn(RUN, word);
const names = named.length === 0 ? Object.keys(RUN).filter(isName) : named.filter(isName);
const wrong = [
  ...named.filter((word) => !isName(word)).map((word) => `there is no benchmark ${JSON.stringify(word)}`),
  ...unknownOptions(names, options).map((option) => `there is no option ${option}`),
];
if (options.some((option) => option === '--help' || option === '-h')) console.log(benchmarkHelp(names));
else if (wrong.length > 0) {
  console.error(`${wrong.join('; ')}; "npm run bench -- --help" prints all benchmarks with their options`);
  process.exitCode = 2;
} else {
  // Their Git servers listen on this machine.
  process.env.SLUICE_ALLOW_GIT_HOST ??= '127.0.0.1';
  for (const name of names) {
    console.log(`${name} (Node ${process.versions.node})\n`);
    await RUN[name](options);
  }
}
