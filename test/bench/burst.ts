import { setTimeout as delay } from 'node:timers/promises';
import { systemClock } from '../../src/foundation/time/clock.ts';
import { DEFAULT_NETWORK } from '../../src/git/network/git-network.ts';
import { DEFAULT_POLICY } from '../../src/package/model/policy/policy.ts';
import { openPackageRepository } from '../../src/package/store/opening/open-package-repository.ts';
import { RevisionStore } from '../../src/package/store/revision-store.ts';
import { repositoryKind } from '../../src/resource/kinds/porch/repository.ts';
import { serverTrust } from '../support/trust.ts';
import { context, newPackage } from './publish-one-by-one.ts';

export interface Burst {
  /** Milliseconds until all drafts were at the remote. */
  readonly drafts: number;
  /** Milliseconds of each approval during the burst. */
  readonly approvals: readonly number[];
}

/** Creates many drafts at once in a remote repository; meanwhile packages that were proposed earlier are approved at intervals. */
export async function burst(url: string, dataFolder: string, count: number, approvals: number): Promise<Burst> {
  const object = repositoryKind.complete({ metadata: { name: 'bench' }, spec: { git: { repo: url } } });
  const store = new RevisionStore();
  await store.add(
    await openPackageRepository(object, {
      trust: serverTrust,
      dataFolder,
      git: { network: DEFAULT_NETWORK },
      clock: systemClock,
      policyFor: () => DEFAULT_POLICY,
      dependentsOf: () => [],
      onChange: (changes) => store.announce(changes),
    }),
  );
  const draft = (name: string, number: number) =>
    store.create(
      'bench',
      { package: name, workspace: 'v1', source: { type: 'init', files: newPackage(number) } },
      context,
    );
  const names: string[] = [];
  for (let number = 0; number < approvals; number++) {
    const { name } = await draft(`proposed-${number}`, number);
    await store.update(name, { action: 'propose' }, context);
    names.push(name);
  }
  const started = performance.now();
  const over = Promise.all(Array.from({ length: count }, (_, number) => draft(`burst-${number}`, number)));
  const times: number[] = [];
  for (const name of names) {
    await delay(100);
    const asked = performance.now();
    await store.update(name, { action: 'approve' }, context);
    times.push(performance.now() - asked);
  }
  await over;
  const drafts = performance.now() - started;
  await store.close();
  return { drafts, approvals: times };
}
