// A process that runs the scenario from the current state of the repository, and stops at a numbered place to be killed.
// Arguments: folder of the data, address of the repository, number of the place (0: never).
import { systemClock } from '../../src/foundation/time/clock.ts';
import type { GitRepository } from '../../src/git/git-repository.ts';
import { DEFAULT_NETWORK } from '../../src/git/network/git-network.ts';
import { openLocation } from '../../src/git/open/open-location.ts';
import { MIRROR_REFSPECS } from '../../src/package/model/identity/mirror-refspecs.ts';
import { DEFAULT_POLICY } from '../../src/package/model/policy/policy.ts';
import { PackageRepository } from '../../src/package/store/package-repository.ts';
import { RevisionStore } from '../../src/package/store/revision-store.ts';
import { folderTrust, MAIN_LAYOUT, trustOf } from '../support/trust.ts';
import { progress, SCENARIO } from './scenario.ts';

const [folder = '', url = '', place = '0'] = process.argv.slice(2);
/** Calls that change something in Git; the process stops before and after each. */
const WRITES: ReadonlySet<string | symbol> = new Set([
  'writeBlob',
  'editTree',
  'writeCommit',
  'transaction',
  'push',
  'fetch',
]);
let places = 0;

function here(): void {
  places += 1;
  if (places !== Number(place)) return;
  process.stdout.write('here\n');
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
}

function stopping(inner: GitRepository): GitRepository {
  return new Proxy(inner, {
    get(target, property) {
      const value = Reflect.get(target, property, target) as unknown;
      if (typeof value !== 'function') return value;
      if (!WRITES.has(property)) return value.bind(target);
      return async (...args: unknown[]) => {
        here();
        const result: unknown = await value.apply(target, args);
        here();
        return result;
      };
    },
  });
}

const { git, remote } = await openLocation({
  url,
  mirrorPath: `${folder}/mirror.git`,
  repository: { network: DEFAULT_NETWORK },
});
if (remote !== undefined) await git.fetch(remote, { refspecs: MIRROR_REFSPECS, prune: true });
const store = new RevisionStore();
const trust = await folderTrust(folder);
await store.add(
  await PackageRepository.open({
    ...(await trustOf(git, url, MAIN_LAYOUT, trust, remote)),
    name: 'packages',
    namespace: 'default',
    deployment: false,
    url,
    layout: MAIN_LAYOUT,
    git: stopping(git),
    ...(remote === undefined ? {} : { remote }),
    cacheFile: `${folder}/cache.ndjson`,
    clock: systemClock,
    policyFor: () => DEFAULT_POLICY,
    dependentsOf: () => [],
    onChange: (changes) => store.announce(changes),
  }),
);
for (let step = await progress(store); step < SCENARIO.length; step++) {
  await SCENARIO[step]?.run(store);
  await store.repository('packages').saveCache();
  process.stdout.write(`done ${step + 1}\n`);
}
await store.close();
process.stdout.write(`places ${places}\n`);
