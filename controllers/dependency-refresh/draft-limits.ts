import type { ReconcileResult } from '../../src/controller/reconciler.ts';
import type { Clock } from '../../src/foundation/time/clock.ts';
import type { DependencyLimit } from '../../src/package/model/policy/policy.ts';
import { type PackageRevision, revisionId } from '../../src/package/model/revision/package-revision.ts';
import type { RevisionStore } from '../../src/package/store/revision-store.ts';
import { keyText, type ObjectKey } from '../../src/resource/object/object.ts';
import {
  type DraftRate,
  DraftRates,
  MAX_DRAFTS_OF_PACKAGE_PER_MINUTE,
  openedSince,
  PROVIDERS_PREFIX,
  packageId,
  rateOfPackage,
} from '../draft-rates.ts';
import { isOpenDraft, OpenDrafts } from './open-drafts.ts';

/** In each namespace: a provider with many consumers must not occupy the controllers of all others. */
const MAX_DRAFTS_PER_MINUTE = 60;
/** While a policy permits no draft. A draft that ends lets another one begin, and a changed policy all: this finds what no event shows. */
const HELD_RETRY_MS = 300_000;

/** Why no draft is opened now. */
interface Held extends ReconcileResult {
  readonly requeueAfter: number;
  readonly reason: string;
  readonly event?: { readonly reason: string; readonly message: string };
}

type Rate = DraftRate & Omit<Held, 'requeueAfter'>;

export interface DraftLimitsOptions {
  readonly store: Pick<RevisionStore, 'list' | 'find' | 'repositoryOf'>;
  readonly clock: Clock;
  /** In each namespace. Default 60. */
  readonly maxDraftsPerMinute?: number;
  /** Default: those of this controller only. */
  readonly rates?: DraftRates;
}

/** A draft that is being created. */
interface Opening {
  readonly namespace: string;
  /** The policies that count it; none once it is among the open ones. */
  policies: readonly string[];
  readonly rates: readonly Rate[];
}

/** The drafts that may be opened: of a package, in a namespace, and of the packages that a policy with `spec.dependencies` selects. */
export class DraftLimits {
  readonly #options: DraftLimitsOptions;
  readonly #rates: DraftRates;
  readonly #open: OpenDrafts;
  /** By package. */
  readonly #opening = new Map<string, Opening>();
  /** By namespace and policy, then by package: the publications that wait for an open draft to end, the one that waits longest first. */
  readonly #held = new Map<string, Map<string, ObjectKey>>();
  /** By the publications that were woken because a draft has ended: the policy that had held them. */
  readonly #woken = new Map<string, string>();
  #enqueue: (key: ObjectKey) => void = () => undefined;

  constructor(options: DraftLimitsOptions) {
    this.#options = options;
    const { store, clock } = options;
    this.#rates = options.rates ?? new DraftRates(clock);
    this.#open = new OpenDrafts({ store, clock, limitsOf: (revision) => this.#limitsOf(revision) });
  }

  /** `enqueue` wakes a publication that was held. `note` has to be called with every change of a revision from then on. */
  start(enqueue: (key: ObjectKey) => void): void {
    this.#enqueue = enqueue;
    this.#open.start();
  }

  note(before: PackageRevision | undefined, after: PackageRevision | undefined): void {
    const hasEnded = this.#open.note(before, after);
    const opening = after === undefined || !isOpenDraft(after) ? undefined : this.#opening.get(packageOf(after));
    if (opening !== undefined) opening.policies = [];
    if (!hasEnded || before === undefined) return;
    const start = policyId(before.namespace, '');
    for (const policy of [...this.#held.keys()]) if (policy.startsWith(start)) this.#wakeNext(policy);
  }

  /** Returns why no draft of this publication may be opened now; undefined if it may, until `end`. */
  begin(revision: PackageRevision): Held | undefined {
    const limits = this.#limitsOf(revision);
    const rates = this.#ratesOf(revision, limits);
    const held = this.#heldBy(revision, limits) ?? this.#takeRates(rates);
    const { namespace } = revision;
    const policies = limits.map(({ policy }) => policy);
    if (held === undefined) this.#opening.set(packageOf(revision), { namespace, policies, rates });
    return held;
  }

  /** To be called once the draft is in the store, or without it if none was created: then it takes nothing of the rates. */
  end(revision: PackageRevision, made?: PackageRevision): void {
    const opening = this.#opening.get(packageOf(revision));
    this.#opening.delete(packageOf(revision));
    if (made !== undefined) this.#woken.delete(revisionId(revision));
    else {
      for (const rate of opening?.rates ?? []) this.#rates.giveBack(rate);
      for (const policy of opening?.policies ?? []) this.#wakeNext(policyId(revision.namespace, policy));
    }
  }

  /**
   * To be called once a publication was looked at that needs no draft, or has one. If it was woken because a draft has ended, and opened none, the next
   * one that waits for the same policy is woken.
   */
  settle(key: ObjectKey): void {
    const policy = this.#woken.get(keyText(key));
    this.#woken.delete(keyText(key));
    if (policy !== undefined) this.#wakeNext(policy);
  }

  #wakeNext(policy: string): void {
    const waiting = this.#held.get(policy);
    const [next] = waiting ?? [];
    if (next === undefined) return;
    const [of, key] = next;
    this.#release(policy, of);
    this.#woken.set(keyText(key), policy);
    this.#enqueue(key);
  }

  #hold(policy: string, revision: PackageRevision): void {
    const { namespace, name } = revision;
    const waiting = this.#held.get(policy) ?? new Map<string, ObjectKey>();
    this.#held.set(policy, waiting.set(packageOf(revision), { namespace, name }));
    const woken = this.#woken.get(revisionId(revision));
    this.#woken.delete(revisionId(revision));
    // What has ended lets another one begin.
    if (woken !== undefined && woken !== policy) this.#wakeNext(woken);
  }

  #release(policy: string, of: string): void {
    const waiting = this.#held.get(policy);
    waiting?.delete(of);
    if (waiting?.size === 0) this.#held.delete(policy);
  }

  /** The policy that permits no draft now, whatever the time is. */
  #heldBy(revision: PackageRevision, limits: readonly DependencyLimit[]): Held | undefined {
    const { namespace } = revision;
    const isFull = ({ policy, maxOpenDrafts }: DependencyLimit) =>
      maxOpenDrafts !== undefined && this.#openDrafts(namespace, policy) >= maxOpenDrafts;
    const found = limits.find((limit) => limit.maxDraftsPerMinute === 0 || isFull(limit));
    for (const one of limits)
      if (one === found && one.maxDraftsPerMinute !== 0) this.#hold(policyId(namespace, one.policy), revision);
      else this.#release(policyId(namespace, one.policy), packageOf(revision));
    if (found === undefined) return undefined;
    const { policy, maxDraftsPerMinute: most, maxOpenDrafts = 0 } = found;
    const rule =
      most === 0
        ? 'spec.dependencies.maxDraftsPerMinute: 0'
        : `spec.dependencies.maxOpenDrafts: ${maxOpenDrafts}; publish or delete the drafts ${PROVIDERS_PREFIX}*`;
    const message = `its providers have changed, and PackagePolicy ${policy} permits no further draft (${rule})`;
    const reason = `PackagePolicy ${policy}`;
    return { requeueAfter: HELD_RETRY_MS, reason, event: { reason: 'HeldByPolicy', message } };
  }

  #limitsOf(revision: PackageRevision): readonly DependencyLimit[] {
    return this.#options.store.repositoryOf(revision).policyFor(revision).dependencyLimits;
  }

  /** Those that are open, and those that are being created. */
  #openDrafts(namespace: string, policy: string): number {
    const opening = [...this.#opening.values()].filter(
      (one) => one.namespace === namespace && one.policies.includes(policy),
    );
    return this.#open.count(namespace, policy) + opening.length;
  }

  /** Takes a draft from each limit on their number in a minute, or from none. */
  #takeRates(rates: readonly Rate[]): Held | undefined {
    const taken = this.#rates.take(rates);
    if (taken === undefined) return undefined;
    const { reason, event } = taken.rate;
    return { requeueAfter: taken.pauseMs, reason, ...(event === undefined ? {} : { event }) };
  }

  #ratesOf(revision: PackageRevision, limits: readonly DependencyLimit[]): readonly Rate[] {
    const { namespace, key } = revision;
    const { maxDraftsPerMinute = MAX_DRAFTS_PER_MINUTE } = this.#options;
    const message = `at most ${MAX_DRAFTS_OF_PACKAGE_PER_MINUTE} drafts of a package are opened in a minute: does each of them lead to another one of its providers?`;
    return [
      {
        ...rateOfPackage(this.#options.store, { namespace, repository: key.repository, path: key.package }),
        reason: 'other drafts of the package',
        event: { reason: 'TooManyDrafts', message },
      },
      {
        ...{ of: namespace, most: maxDraftsPerMinute, reason: 'other drafts of the namespace' },
        opened: (since) => this.#openedSince(since, namespace).map(({ at }) => at),
      },
      ...limits.flatMap(({ policy, maxDraftsPerMinute: most }) =>
        most === undefined
          ? []
          : {
              ...{ of: `${namespace} ${policy}`, most, reason: `other drafts of PackagePolicy ${policy}` },
              opened: (since: number) =>
                this.#openedSince(since, namespace)
                  .filter((one) => this.#limitsOf(one.revision).some((limit) => limit.policy === policy))
                  .map(({ at }) => at),
            },
      ),
    ];
  }

  /** Of all that are open and were published: a rate reads them once. */
  #openedSince(since: number, namespace: string) {
    const rows = this.#options.store.list().filter((one) => one.namespace === namespace);
    return openedSince(since, rows, PROVIDERS_PREFIX);
  }
}

function policyId(namespace: string, policy: string): string {
  return `${namespace}/${policy}`;
}

function packageOf({ namespace, key }: PackageRevision): string {
  return packageId(namespace, key.repository, key.package);
}
