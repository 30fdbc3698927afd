import { conditionsOf } from '../../kptfile-schema/index.ts';
import type { EventRecorder } from '../../src/controller/event-recorder.ts';
import type { Clock } from '../../src/foundation/time/clock.ts';
import { settle } from '../../src/foundation/time/manual-clock.ts';
import { verdictOf } from '../../src/package/model/record/record.ts';
import type { Resolution, Resolver } from '../../src/package/plan/ports/resolver.ts';
import type { RevisionStore } from '../../src/package/store/revision-store.ts';
import type { Client } from '../../src/resource/client/client.ts';
import { packagePolicyKind } from '../../src/resource/kinds/sluice/package-policy.ts';
import { type RevisionControllerOptions, revisionController } from './revision-controller.ts';

/** The draft of tests that name no other. */
export const NAME = 'apps.app.w1';

interface Parts {
  readonly client: Client;
  readonly store: RevisionStore;
  readonly clock: Clock;
  readonly recorder: EventRecorder;
}

/** The controller under test, and what it wrote into the repository. */
export function benchOf({ client, store, clock, recorder }: Parts) {
  const optionsFor = (resolvers: readonly Resolver[], more: Partial<RevisionControllerOptions> = {}) =>
    revisionController({ client, store, clock, recorder, resolvers, ...more });
  const revision = (name = NAME) => store.get(name);
  let policies = 0;
  return {
    optionsFor,
    revision,
    /** A controller without the memory of earlier ones. */
    reconciler: (resolvers: readonly Resolver[], more: Partial<RevisionControllerOptions> = {}) => {
      const { reconcile } = optionsFor(resolvers, more);
      return (name = NAME) =>
        reconcile({ namespace: 'default', name }, { signal: new AbortController().signal, failures: 0 });
    },
    condition: (type: string, name = NAME) => {
      const { kptfile } = revision(name);
      return kptfile === undefined ? undefined : conditionsOf(kptfile).get(type);
    },
    verdict: (type: string) => verdictOf(revision().record, type),
    /** Number of commits of controllers on the draft. */
    commits: async () => {
      const { git } = store.repository('apps');
      let count = 0;
      for (let next: string | undefined = revision().commit; next !== undefined; ) {
        const { author, parents } = await git.readCommit(next);
        if (/^(controller|resolver):/.test(author.name)) count += 1;
        next = parents[0];
      }
      return count;
    },
    /** Edits the draft as a user. */
    edit: (path: string, text: string) =>
      store.change(NAME, { files: new Map([[path, Buffer.from(text)]]) }, { actor: { name: 'anna' }, face: 'cli' }),
    policy: async (spec: object) => {
      policies += 1;
      await client.create(packagePolicyKind, { metadata: { name: `p${policies}` }, spec });
      // The evaluation receives it by a watch.
      await settle();
    },
  };
}

export function conditionResolution(name: string, more: Partial<Resolution> = {}): Resolution {
  return { conditions: [{ type: `test.dev/${name}`, status: 'True', reason: 'Fine' }], ...more };
}

export function fileResolution(path: string, text: string): Resolution {
  return { edits: new Map([[path, text]]) };
}
