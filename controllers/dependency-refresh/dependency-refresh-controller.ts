import { createHash } from 'node:crypto';
import type { ControllerOptions } from '../../src/controller/controller.ts';
import { EventRecorder } from '../../src/controller/event-recorder.ts';
import { specChanged } from '../../src/controller/predicates.ts';
import type { ReconcileResult } from '../../src/controller/reconciler.ts';
import { triggerSource } from '../../src/controller/source.ts';
import { isSluiceError } from '../../src/foundation/sluice-error.ts';
import { canonicalJson } from '../../src/foundation/text/canonical-json.ts';
import { AUTO_LIFECYCLE_ANNOTATION } from '../../src/package/model/revision/lifecycle-annotations.ts';
import { type PackageRevision, repositoryIdOf, revisionId } from '../../src/package/model/revision/package-revision.ts';
import type { RevisionStore } from '../../src/package/store/revision-store.ts';
import type { Client } from '../../src/resource/client/client.ts';
import { packageRevisionKind } from '../../src/resource/kinds/porch/package-revision.ts';
import { packagePolicyKind } from '../../src/resource/kinds/sluice/package-policy.ts';
import { keyText, type ObjectKey } from '../../src/resource/object/object.ts';
import type { RequestContext } from '../../src/resource/object/request-context.ts';
import { type DraftRates, PROVIDERS_PREFIX } from '../draft-rates.ts';
import { EventDeduplicator } from '../event-deduplicator.ts';
import { PackageRings } from '../package-rings.ts';
import { ConsumerIndex, packageInterest } from '../revision/resolvers/dependency/consumer-index.ts';
import {
  type Dependency,
  hasDependencies,
  isDependency,
  lockOf,
  readDependency,
} from '../revision/resolvers/dependency/dependency-object.ts';
import type { DependencyOptions } from '../revision/resolvers/dependency/dependency-resolver.ts';
import { dependencySources } from '../revision/resolvers/dependency/dependency-sources.ts';
import { type DependencyOutcome, resolveDependency } from '../revision/resolvers/dependency/resolve-dependency.ts';
import { SimilarNames } from '../revision/resolvers/dependency/similar-names.ts';
import { DraftLimits } from './draft-limits.ts';

const REFRESH_ACTOR = 'controller:dependency-refresh';
const CONTEXT: RequestContext = { actor: { name: REFRESH_ACTOR }, face: 'controller' };
const UNREAD_RETRY_MS = 60_000;

export interface DependencyRefreshOptions extends DependencyOptions {
  readonly store: Pick<
    RevisionStore,
    'list' | 'find' | 'content' | 'evaluate' | 'subscribe' | 'create' | 'repositoryOf'
  >;
  readonly client: Client;
  /** In each namespace. Default 60. */
  readonly maxDraftsPerMinute?: number;
  /** Shared with other controllers that open drafts. Default: those of this controller only. */
  readonly rates?: DraftRates;
  /** Default: a new recorder on `client`. */
  readonly recorder?: EventRecorder;
}

/** A Dependency whose providers are others than those that the published package has locked. */
interface Change {
  readonly dependency: Dependency;
  readonly outcome: DependencyOutcome;
}

/** Opens a draft of a published package when the packages that it requires have changed; at most one is open. */
export function dependencyRefreshController(options: DependencyRefreshOptions): ControllerOptions {
  const { store, clock } = options;
  const client = options.client.as({ name: REFRESH_ACTOR }, 'controller');
  const events = new EventDeduplicator(
    options.recorder ?? new EventRecorder({ client, clock, component: REFRESH_ACTOR }),
  );
  const consumers = new ConsumerIndex();
  const rings = new PackageRings(options);
  const names = new SimilarNames(options);
  const limits = new DraftLimits(options);

  return {
    name: 'dependency-refresh',
    sources: [
      triggerSource((enqueue) => {
        for (const row of store.list({ lifecycle: 'Published' })) if (isConsumer(row)) enqueue(keyOf(row));
        limits.start(enqueue);
        return store.subscribe((changes) => {
          for (const { before, after } of changes) {
            limits.note(before, after);
            if (after !== undefined && isConsumer(after)) enqueue(keyOf(after));
            // The end of a draft lets the next one begin.
            if (before === undefined || (before.lifecycle !== 'Draft' && before.lifecycle !== 'Proposed')) continue;
            if (after?.lifecycle === before.lifecycle) continue;
            const latest = siblingsOf(before).find(isConsumer);
            if (latest !== undefined) enqueue(keyOf(latest));
          }
        });
      }),
      rings.source,
      {
        // Packages may wait for a limit that it had.
        start: ({ informer, enqueue }) =>
          informer(packagePolicyKind).addHandler((event) => {
            const { namespace } = event.object.metadata;
            const limited = event.type === 'update' ? event.old.spec.dependencies : event.object.spec.dependencies;
            if (limited === undefined || (event.type === 'update' && !specChanged(event))) return;
            for (const row of store.list({ lifecycle: 'Published' }))
              if (row.namespace === namespace && isConsumer(row)) enqueue(keyOf(row));
          }),
      },
      ...dependencySources(options, consumers, isConsumer),
    ],
    maxConcurrentReconciles: 4,
    namespaceShare: { most: 2, mostFailing: 1 },
    maxDelayMs: 300_000,
    async reconcile(key, { signal }): Promise<ReconcileResult | undefined> {
      const revision = store.find(keyText(key));
      let result: ReconcileResult | undefined;
      if (revision !== undefined && isConsumer(revision)) result = await refresh(revision, signal);
      else events.forget(key);
      if (result === undefined) limits.settle(key);
      return result;
    },
  };

  async function refresh(revision: PackageRevision, signal: AbortSignal): Promise<ReconcileResult | undefined> {
    const dependencies = await dependenciesOf(revision);
    // Before anything else is read, since any later change must wake this package.
    consumers.record(keyOf(revision), interestsOf(revision, dependencies));
    if (hasOpenDraft(revision)) return undefined;
    if ((await options.unread(signal)).length > 0)
      return { requeueAfter: UNREAD_RETRY_MS, reason: 'repositories that are not read yet' };
    const changes = await changesOf(revision, dependencies);
    const wanted = changes.filter(({ outcome }) => outcome.condition.status === 'True');
    if (wanted.length === 0) {
      const [blocked] = changes;
      if (blocked !== undefined) report(revision, 'Warning', 'ProviderMissing', messageOf(blocked));
      return undefined;
    }
    await store.repositoryOf(revision).refreshPolicies();
    const held = limits.begin(revision);
    if (held !== undefined) {
      const { event, requeueAfter, reason } = held;
      if (event !== undefined) report(revision, 'Warning', event.reason, event.message);
      return { requeueAfter, reason };
    }
    let made: PackageRevision | undefined;
    try {
      made = await open(revision, wanted);
    } finally {
      limits.end(revision, made);
    }
    return undefined;
  }

  function siblingsOf(revision: PackageRevision): PackageRevision[] {
    return store.list({ repository: repositoryIdOf(revision), package: revision.key.package });
  }

  function hasOpenDraft(revision: PackageRevision): boolean {
    return siblingsOf(revision).some(({ lifecycle }) => lifecycle === 'Draft' || lifecycle === 'Proposed');
  }

  async function dependenciesOf(revision: PackageRevision): Promise<Dependency[]> {
    const content = await store.content(revisionId(revision));
    return content
      .objects()
      .filter(isDependency)
      .map(readDependency)
      .filter((one): one is Dependency => !('problem' in one) && one.spec.onProviderChange !== 'Ignore');
  }

  async function changesOf(revision: PackageRevision, dependencies: readonly Dependency[]): Promise<Change[]> {
    const changes: Change[] = [];
    for (const dependency of dependencies) {
      const outcome = await resolveDependency(dependency, revision, { ...options, rings, names });
      if (outcome.isChanged) changes.push({ dependency, outcome });
    }
    return changes;
  }

  /** Returns the draft, unless another process has created it. */
  async function open(revision: PackageRevision, changes: readonly Change[]): Promise<PackageRevision | undefined> {
    const isProposed = changes.every(({ dependency }) => dependency.spec.onProviderChange === 'Propose');
    try {
      const made = await store.create(
        repositoryIdOf(revision),
        {
          package: revision.key.package,
          workspace: workspaceOf(revision, changes),
          source: { type: 'copy', source: revision.name },
          ...(isProposed ? { metadata: { annotations: { [AUTO_LIFECYCLE_ANNOTATION]: 'true' } } } : {}),
        },
        CONTEXT,
      );
      report(revision, 'Normal', 'Refreshed', `created ${made.name}, since ${changes.map(messageOf).join('; ')}`);
      return made;
    } catch (error) {
      // Another process created it: its event shows the draft.
      if (!isSluiceError(error, 'AlreadyExists')) throw error;
      return undefined;
    }
  }

  function report(revision: PackageRevision, type: 'Normal' | 'Warning', reason: string, message: string): void {
    const { apiVersion, kind } = packageRevisionKind;
    const { namespace, name, uid } = revision;
    events.record({ apiVersion, kind, metadata: { namespace, name, uid } }, type, reason, message, 'providers');
  }
}

/** The latest publication of a package, if it depends on others. */
function isConsumer(revision: PackageRevision): boolean {
  return revision.lifecycle === 'Published' && revision.latest && hasDependencies(revision);
}

function keyOf({ namespace, name }: PackageRevision): ObjectKey {
  return { namespace, name };
}

function interestsOf({ namespace }: PackageRevision, dependencies: readonly Dependency[]): string[] {
  const names = dependencies.map(({ packageName }) => packageInterest(namespace, packageName));
  return [...new Set(names)].sort();
}

/** The same for the same providers, so that a retry after a crash finds what it created. */
function workspaceOf({ revision }: PackageRevision, changes: readonly Change[]): string {
  const providers = changes.map(({ dependency, outcome }) => [dependency.type, outcome.providers]);
  const digest = createHash('sha256').update(canonicalJson(providers)).digest('hex').slice(0, 10);
  return `${PROVIDERS_PREFIX}${revision + 1}-${digest}`;
}

function messageOf({ dependency, outcome }: Change): string {
  const locked = lockOf(dependency.object).map((one) => `${one.repository}/${one.package} v${one.revision}`);
  return `${dependency.object.name} has locked ${locked.slice(0, 5).join(', ') || 'nothing'}, and now: ${outcome.condition.message}`;
}
