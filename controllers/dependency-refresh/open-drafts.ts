import type { Clock } from '../../src/foundation/time/clock.ts';
import type { DependencyLimit } from '../../src/package/model/policy/policy.ts';
import { type PackageRevision, revisionId } from '../../src/package/model/revision/package-revision.ts';
import type { RevisionStore } from '../../src/package/store/revision-store.ts';
import { PROVIDERS_PREFIX } from '../draft-rates.ts';

/** What a policy selects can change without an event of a draft: its rules, and labels and owners of others. */
const MAX_AGE_MS = 10_000;

interface Namespace {
  readonly drafts: Set<string>;
  /** Of the drafts that were not changed since `readAt`. */
  readonly policies: Map<string, readonly string[]>;
  /** By policy; undefined once a draft has changed. */
  counts?: ReadonlyMap<string, number> | undefined;
  readAt: number;
}

export interface OpenDraftsOptions {
  readonly store: Pick<RevisionStore, 'list' | 'find'>;
  readonly clock: Pick<Clock, 'monotonic'>;
  limitsOf(revision: PackageRevision): readonly DependencyLimit[];
}

/**
 * Drafts and proposals that were opened because of providers, by the policies that select their packages. They are counted from events: the
 * policies of a draft are computed when it changes, and at most every ten seconds, however many packages wait for a draft to end.
 */
export class OpenDrafts {
  readonly #options: OpenDraftsOptions;
  readonly #namespaces = new Map<string, Namespace>();

  constructor(options: OpenDraftsOptions) {
    this.#options = options;
  }

  /** Reads those of the store. `note` has to be called with every change from then on. */
  start(): void {
    for (const lifecycle of ['Draft', 'Proposed'] as const)
      for (const revision of this.#options.store.list({ lifecycle })) this.note(undefined, revision);
  }

  /** Takes over a change of a revision. Returns whether one of these drafts has ended by it. */
  note(before: PackageRevision | undefined, after: PackageRevision | undefined): boolean {
    const [wasOpen, open] = [isOpenDraft(before), isOpenDraft(after)];
    const revision = after ?? before;
    if (revision === undefined || !(wasOpen || open)) return false;
    const id = revisionId(revision);
    const { namespace } = revision;
    const of: Namespace = this.#namespaces.get(namespace) ?? {
      drafts: new Set(),
      policies: new Map(),
      readAt: Number.NEGATIVE_INFINITY,
    };
    of.policies.delete(id);
    of.counts = undefined;
    if (open) of.drafts.add(id);
    else of.drafts.delete(id);
    if (of.drafts.size === 0) this.#namespaces.delete(namespace);
    else this.#namespaces.set(namespace, of);
    return wasOpen && !open;
  }

  /** Of the packages that a policy selects. */
  count(namespace: string, policy: string): number {
    const of = this.#namespaces.get(namespace);
    return of === undefined ? 0 : (this.#countsOf(of).get(policy) ?? 0);
  }

  #countsOf(of: Namespace): ReadonlyMap<string, number> {
    const { store, clock, limitsOf } = this.#options;
    if (clock.monotonic() - of.readAt >= MAX_AGE_MS) {
      of.policies.clear();
      of.counts = undefined;
      of.readAt = clock.monotonic();
    }
    if (of.counts !== undefined) return of.counts;
    const counts = new Map<string, number>();
    for (const id of of.drafts) {
      let policies = of.policies.get(id);
      if (policies === undefined) {
        // The repository may just be removed.
        const draft = store.find(id);
        policies = draft === undefined ? [] : limitsOf(draft).map(({ policy }) => policy);
        of.policies.set(id, policies);
      }
      for (const policy of policies) counts.set(policy, (counts.get(policy) ?? 0) + 1);
    }
    of.counts = counts;
    return counts;
  }
}

/** Whether it is a draft or a proposal that was opened because of providers. */
export function isOpenDraft(revision: PackageRevision | undefined): boolean {
  return (
    (revision?.lifecycle === 'Draft' || revision?.lifecycle === 'Proposed') &&
    revision.key.workspace.startsWith(PROVIDERS_PREFIX)
  );
}
