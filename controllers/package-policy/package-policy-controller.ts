import { conditionsOf, gatesOf } from '../../kptfile-schema/index.ts';
import type { ControllerOptions } from '../../src/controller/controller.ts';
import type { InformerEvent } from '../../src/controller/informer-store.ts';
import { specOrMetadataChanged } from '../../src/controller/predicates.ts';
import type { ReconcileResult } from '../../src/controller/reconciler.ts';
import { triggerSource, watchKind } from '../../src/controller/source.ts';
import { filterInSlices, inSlices } from '../../src/foundation/concurrency/in-slices.ts';
import { retryConflicts } from '../../src/foundation/concurrency/retry-conflicts.ts';
import { isSluiceError, messageOf } from '../../src/foundation/sluice-error.ts';
import type { Clock } from '../../src/foundation/time/clock.ts';
import { isSelectedBy, type VariantReader, variantSetsOf } from '../../src/package/store/policies/selected-packages.ts';
import type { RevisionStore } from '../../src/package/store/revision-store.ts';
import type { Client } from '../../src/resource/client/client.ts';
import { packageVariantKind } from '../../src/resource/kinds/porch/package-variant.ts';
import { type PackageVariantSet, packageVariantSetKind } from '../../src/resource/kinds/porch/package-variant-set.ts';
import { type Repository, repositoryKind } from '../../src/resource/kinds/porch/repository.ts';
import { clusterRoleKind, roleKind } from '../../src/resource/kinds/rbac/role.ts';
import { clusterRoleBindingKind, roleBindingKind } from '../../src/resource/kinds/rbac/role-binding.ts';
import { gatesText, type PackagePolicy, packagePolicyKind } from '../../src/resource/kinds/sluice/package-policy.ts';
import { type Condition, type NewCondition, setCondition } from '../../src/resource/object/condition.ts';
import type { KubernetesObject, Stored } from '../../src/resource/object/object.ts';
import { sameValue } from '../../src/resource/object/same-value.ts';
import type { Kind } from '../../src/resource/schema/kind.ts';
import type { MayApprove } from '../pull-request/rights.ts';
import { unknownNames } from '../unknown-names.ts';
import { APPROVERS_PERMITTED, approverRights, namesApprovers, remembered } from './approver-rights.ts';
import { boundGroups } from './bound-groups.ts';
import { NAMES_KNOWN, policyConditions, SELECTED } from './policy-conditions.ts';
import { gatesRequired, unknownGroups, unknownTypes } from './policy-names.ts';
import { QUORUM_REACHABLE, quorumRights } from './quorum-rights.ts';
import { clashText, repositoryClash, rowClash } from './review-clash.ts';
import { REVIEW_VALID, reviewCondition, unreadReview } from './review-valid.ts';

export interface PackagePolicyOptions {
  readonly client: Client;
  readonly store: Pick<RevisionStore, 'findRepository' | 'list' | 'subscribe'>;
  readonly clock: Clock;
  readonly policies: (namespace: string) => readonly Stored<PackagePolicy>[];
  readonly repositories: (namespace: string) => readonly Stored<Repository>[];
  readonly variantSets: (namespace: string) => readonly Stored<PackageVariantSet>[];
  readonly variants: VariantReader;
  /** False in a cluster, whose bindings Sluice has no right to read. */
  readonly readsBindings: boolean;
  /** Default: not known, as where Sluice does not listen. */
  readonly mayApprove?: MayApprove | undefined;
  /** What is wrong with spec.review and its Secret, as far as these objects show it; a sentence each. Default: nothing. */
  readonly reviewProblems?: (policy: Stored<PackagePolicy>, signal: AbortSignal) => Promise<readonly string[]>;
}

/** Of the text for tables. */
const MAX_GATES_CHARACTERS = 1000;

/** Milliseconds between two looks at a namespace without an event, for what no event shows. */
const LOOK_MS = 300_000;
/** While a repository is not read. */
const UNREAD_LOOK_MS = 10_000;
/** While a review is not valid, or not known to be: Secrets have no events here. */
const INVALID_LOOK_MS = 60_000;
/** Between two looks at a namespace at least, since a fan-out has thousands of events. */
const PAUSE_MS = 2000;
/**
 * A look compares each policy with each package: it is followed by a pause of so many times what it took, two percent of the time at most, whatever
 * number of namespaces there is.
 */
const PAUSE_FACTOR = 50;

/**
 * Reports in the status of each policy which of its fields have no effect: a selector that selects nothing, and names that nothing has. A request is for
 * the namespace of its name: the policies in it are about the same packages.
 */
export function packagePolicyController(options: PackagePolicyOptions): ControllerOptions {
  const { store, clock, policies, repositories, variantSets, variants, readsBindings, mayApprove } = options;
  const reviewProblems = options.reviewProblems ?? (async () => []);
  const client = options.client.as({ name: 'controller:package-policy' }, 'controller');
  const mayReview = mayApprove === undefined || readsBindings ? mayApprove : remembered(mayApprove, clock);
  // In a cluster the users of quorums are no part of what is asked for.
  const mayVote = readsBindings ? mayApprove : undefined;
  /** When all packages of a namespace were looked at last, in milliseconds of running time, as all times here. */
  const looks = new Map<string, number>();
  /** No namespace is looked at before. */
  let pausedUntilMs = Number.NEGATIVE_INFINITY;

  return {
    name: 'package-policy',
    sources: [
      watchKind(packagePolicyKind, {
        predicate: specOrMetadataChanged,
        map: ({ object }) => [{ name: object.metadata.namespace ?? '' }],
      }),
      triggerSource((enqueue) =>
        store.subscribe((changes) => {
          const changed = changes.filter(
            ({ before, after }) => before?.kptfile !== after?.kptfile || !before || !after,
          );
          const namespaces = new Set(changed.map(({ before, after }) => (after ?? before)?.namespace ?? ''));
          for (const name of namespaces) if (policies(name).length > 0) enqueue({ name });
        }),
      ),
      {
        start({ informer, enqueue }) {
          const all = informer(packagePolicyKind);
          const wake = (namespace: string | undefined) => {
            const namespaces =
              namespace === undefined ? all.list().map(({ metadata }) => metadata.namespace) : [namespace];
            for (const name of new Set(namespaces))
              if (name !== undefined && policies(name).length > 0) enqueue({ name });
          };
          const follow = <T extends KubernetesObject>(kind: Kind<T>, isNews: (event: InformerEvent<T>) => boolean) =>
            informer(kind).addHandler((event) => {
              if (isNews(event)) wake(event.object.metadata.namespace);
            });
          // What policies name.
          const named = [
            follow(
              repositoryKind,
              (event) =>
                specOrMetadataChanged(event) ||
                (event.type === 'update' && !sameValue(event.old.status?.policies, event.object.status?.policies)),
            ),
            follow(packageVariantSetKind, specOrMetadataChanged),
            follow(packageVariantKind, specOrMetadataChanged),
          ];
          // What decides who may approve, and which groups there are; these objects have no spec.
          const any = () => true;
          const roles = () => [
            ...[follow(roleKind, any), follow(roleBindingKind, any)],
            ...[follow(clusterRoleKind, any), follow(clusterRoleBindingKind, any)],
          ];
          const ends = [...named, ...(readsBindings ? roles() : [])];
          return () => {
            for (const end of ends) end();
          };
        },
      },
    ],
    maxConcurrentReconciles: 1,
    maxDelayMs: 300_000,
    async reconcile({ name: namespace }, { signal }): Promise<ReconcileResult | undefined> {
      const present = policies(namespace);
      if (present.length === 0) {
        looks.delete(namespace);
        return undefined;
      }
      const beganMs = clock.monotonic();
      const waitMs = waitOf(namespace, beganMs);
      if (waitMs > 0) return { requeueAfter: waitMs, reason: 'it looked a moment ago' };
      const registered = new Map(repositories(namespace).map((one) => [one.metadata.name, one]));
      const names = {
        repositories: [...registered.keys()],
        variantSets: variantSets(namespace).map(({ metadata }) => metadata.name),
      };
      const rows = names.repositories.flatMap((name) => store.list({ repository: `${namespace}/${name}` }));
      // The packages of a repository are announced a moment before it can be found.
      const announced = new Set(rows.map(({ key }) => key.repository));
      const isRead = names.repositories.every(
        (name) => announced.has(name) || store.findRepository(`${namespace}/${name}`) !== undefined,
      );
      const types = new Set<string>();
      const required = gatesRequired(present, [...registered.values()]);
      const gates = new Set(required);
      await inSlices(rows, ({ kptfile }) => {
        if (kptfile === undefined) return;
        for (const type of gatesOf(kptfile)) gates.add(type);
        for (const type of [...gatesOf(kptfile), ...conditionsOf(kptfile).keys()]) types.add(type);
      });
      const groups = readsBindings ? await boundGroups(client, namespace) : undefined;
      const count = (some: readonly { readonly key: { readonly repository: string; readonly package: string } }[]) =>
        new Set(some.map(({ key }) => `${key.repository}/${key.package}`)).size;
      const select = (policy: Stored<PackagePolicy>) =>
        filterInSlices(rows, (row) =>
          isSelectedBy(policy, row, registered.get(row.key.repository), () => variantSetsOf(variants, row, namespace)),
        );
      const reviewing = present.filter(({ spec }) => spec.review !== undefined);
      const reviewed = new Map<Stored<PackagePolicy>, ReadonlySet<(typeof rows)[number]>>();
      if (reviewing.length > 1) for (const one of reviewing) reviewed.set(one, new Set(await select(one)));
      const clashOf = (policy: Stored<PackagePolicy>): string[] => {
        const clash = rowClash(policy, reviewed);
        if (clash === undefined) {
          const others = reviewing.filter((one) => one !== policy);
          return [repositoryClash(policy, others, [...registered.values()]) ?? []].flat();
        }
        const { key } = clash.row;
        const what = `packages such as ${key.repository}/${key.package}`;
        return [clashText([policy.metadata.name, ...clash.policies], what)];
      };
      let isInvalid = false;
      for (const policy of present) {
        signal.throwIfAborted();
        const selected = [...(reviewed.get(policy) ?? (await select(policy)))];
        const unknown = [
          ...unknownNames(policy.spec.selector, names),
          ...(isRead && rows.length > 0 ? unknownTypes(policy.spec, types, required && gates) : []),
          ...(groups === undefined ? [] : unknownGroups(policy.spec, groups)),
        ];
        // Packages that are not read yet would count as missing.
        const packages = isRead ? { all: count(rows), selected: count(selected) } : undefined;
        const rights = [
          mayVote && (await quorumRights(policy, mayVote, signal)),
          mayReview && (await approverRights(policy, mayReview, signal)),
        ].flatMap((one) => one ?? []);
        // Whether its names are known is not certain before all packages are read; rights depend on none of them.
        const conditions = isRead || unknown.length > 0 ? policyConditions(policy, { packages, unknown }) : [];
        const review = policy.spec.review === undefined ? [] : [await reviewOf(policy, clashOf(policy), signal)];
        if (review.some(({ status }) => status !== 'True')) isInvalid = true;
        await report(policy, [...conditions, ...rights, ...review], signal);
      }
      const endMs = clock.monotonic();
      // The first packages are looked at as soon as they are there.
      if (rows.length > 0) {
        pausedUntilMs = endMs + (endMs - beganMs) * PAUSE_FACTOR;
        looks.set(namespace, endMs);
      }
      const readLookMs = isInvalid ? INVALID_LOOK_MS : LOOK_MS;
      const lookMs = isRead ? readLookMs : UNREAD_LOOK_MS;
      return {
        requeueAfter: Math.max(lookMs, waitOf(namespace, endMs)),
        reason: 'what no event shows may have changed',
      };
    },
  };

  /** A Secret that cannot be read says nothing of other conditions, and nothing of other policies. */
  async function reviewOf(
    policy: Stored<PackagePolicy>,
    clash: readonly string[],
    signal: AbortSignal,
  ): Promise<NewCondition> {
    try {
      return reviewCondition([...(await reviewProblems(policy, signal)), ...clash]);
    } catch (error) {
      signal.throwIfAborted();
      return clash.length > 0 ? reviewCondition([...clash, messageOf(error)]) : unreadReview(messageOf(error));
    }
  }

  /** Milliseconds until the next look at a namespace. */
  function waitOf(namespace: string, nowMs: number): number {
    const lookedMs = looks.get(namespace) ?? Number.NEGATIVE_INFINITY;
    return Math.max(0, lookedMs + PAUSE_MS - nowMs, pausedUntilMs - nowMs);
  }

  /** The pull-request controller writes the status too, and the cache can be older than what this one has just written. */
  async function report(
    policy: Stored<PackagePolicy>,
    found: readonly NewCondition[],
    signal: AbortSignal,
  ): Promise<void> {
    const { name, namespace, generation } = policy.metadata;
    let latest: Stored<PackagePolicy> | undefined = policy;
    try {
      await retryConflicts(
        async () => {
          const before = latest ?? (await client.get(packagePolicyKind, { name, namespace }));
          latest = undefined;
          // Another look is about the changed policy.
          if (before.metadata.generation === generation) await write(before, found);
        },
        { signal },
      );
    } catch (error) {
      if (!isSluiceError(error, 'NotFound')) throw error;
    }
  }

  /** Whether a condition about packages, which are not all read now, is about an earlier spec, or about names that may exist by now. */
  function isOutdated({ type, status, observedGeneration }: Condition, { metadata }: Stored<PackagePolicy>): boolean {
    if (type === NAMES_KNOWN && status === 'False') return true;
    return (type === NAMES_KNOWN || type === SELECTED) && observedGeneration !== metadata.generation;
  }

  async function write(policy: Stored<PackagePolicy>, found: readonly NewCondition[]): Promise<void> {
    const observed = { observedGeneration: policy.metadata.generation };
    const over = new Set([
      ...((policy.spec.approval.quorum?.from ?? []).length === 0 ? [QUORUM_REACHABLE] : []),
      ...(namesApprovers(policy.spec) ? [] : [APPROVERS_PERMITTED]),
      ...(policy.spec.review === undefined ? [REVIEW_VALID] : []),
    ]);
    const before: readonly Condition[] = policy.status?.conditions ?? [];
    const isFound = new Set(found.map(({ type }) => type));
    const kept = before.filter((one) => !over.has(one.type) && (isFound.has(one.type) || !isOutdated(one, policy)));
    const conditions = found.reduce<readonly Condition[]>(
      (all, one) => setCondition(all, { ...one, ...observed }, clock.now()),
      kept,
    );
    const { gates: _before, ...rest } = policy.status ?? {};
    const gates = gatesText(policy.spec).slice(0, MAX_GATES_CHARACTERS);
    const status = { ...rest, conditions, ...(gates === '' ? {} : { gates }) };
    if (!sameValue(policy.status ?? {}, status)) await client.updateStatus(packagePolicyKind, { ...policy, status });
  }
}
