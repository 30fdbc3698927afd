// A process that runs a scenario, and stops at a numbered place to be killed: before and after each request to the host, and each change of
// the revision. Arguments: the options of the scenario as JSON, number of the place (0: never), the milliseconds by which polls
// are slower.
import { setTimeout as delay } from 'node:timers/promises';
import { GitHubForge } from '../../src/forge/github/github-forge.ts';
import { ForgeTransport } from '../../src/forge/http/forge-transport.ts';
import { PackageRepository } from '../../src/package/store/package-repository.ts';
import { RevisionStore } from '../../src/package/store/revision-store.ts';
import { TrackedRefs } from '../../src/package/transaction/tracked-refs.ts';
import type { ScenarioOptions } from './forge-scenario.ts';
import { runAnyScenario } from './run-any-scenario.ts';

const [options = '{}', place = '0', slowerMs = '0'] = process.argv.slice(2);
let places = 0;

function here(): void {
  places += 1;
  if (places !== Number(place)) return;
  process.stdout.write('here\n');
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
}

type Method = (this: unknown, ...args: unknown[]) => Promise<unknown>;

function stopAround(prototype: object, method: string): void {
  const inner = Reflect.get(prototype, method) as Method;
  Reflect.set(prototype, method, async function (this: unknown, ...args: unknown[]) {
    here();
    const result = await inner.apply(this, args);
    here();
    return result;
  });
}

stopAround(ForgeTransport.prototype, 'send');
for (const method of ['change', 'update']) stopAround(RevisionStore.prototype, method);
stopAround(PackageRepository.prototype, 'writeBranch');
const { listUpdated } = GitHubForge.prototype;
GitHubForge.prototype.listUpdated = async function (...args) {
  await delay(Number(slowerMs));
  return listUpdated.apply(this, args);
};
const scenario = JSON.parse(options) as ScenarioOptions;
if (scenario.userPulls === true) {
  stopAround(RevisionStore.prototype, 'publishMerged');
  // Between the push of a tag and the mark of it, which is no call of its own elsewhere.
  const { raiseMarks } = TrackedRefs.prototype;
  TrackedRefs.prototype.raiseMarks = function (...args) {
    here();
    raiseMarks.apply(this, args);
    here();
  };
}
const lifecycle = await runAnyScenario(scenario);
process.stdout.write(`places ${places} ${lifecycle}\n`);
