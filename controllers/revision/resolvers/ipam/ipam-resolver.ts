import { type Source, watchKind } from '../../../../src/controller/source.ts';
import { messageOf } from '../../../../src/foundation/sluice-error.ts';
import type { Clock } from '../../../../src/foundation/time/clock.ts';
import type { KrmObject } from '../../../../src/package/model/krm/krm.ts';
import { setKrmStatus } from '../../../../src/package/model/krm/krm-edit.ts';
import { formatConditionType } from '../../../../src/package/model/policy/condition-type.ts';
import { matchesPattern } from '../../../../src/package/model/policy/policy.ts';
import { revisionId } from '../../../../src/package/model/revision/package-revision.ts';
import type { Resolver, ResolverContext, ResolverSubject } from '../../../../src/package/plan/ports/resolver.ts';
import type { RevisionStore } from '../../../../src/package/store/revision-store.ts';
import type { Client } from '../../../../src/resource/client/client.ts';
import { ipPrefixKind, networkInstanceKind } from '../../../../src/resource/kinds/ipam/ipam.ts';
import { repositoryKind } from '../../../../src/resource/kinds/porch/repository.ts';
import type { ObjectKey } from '../../../../src/resource/object/object.ts';
import { Allocator } from './allocator.ts';
import {
  type ClaimOutcome,
  type ClaimResult,
  mergeResults,
  type PackageClaim,
  readClaim,
  resultFor,
} from './claim-result.ts';
import { IP_CLAIM_TYPES, isAbandoned, isIpClaim } from './ip-claim.ts';
import { readPools } from './read-pools.ts';
import { unreadRepositories } from './unread-repositories.ts';

/** Annotation of a package, in its Kptfile or of the revision: `"true"` makes every IP claim in it a readiness gate. */
const GATE_CLAIMS_ANNOTATION = 'sluice.dev/gate-claims';

/** A repair changes no revision, and thus wakes no draft. */
const DAMAGE_RETRY_MS = 60_000;

export interface IpamOptions {
  readonly store: RevisionStore;
  readonly client: Client;
  readonly clock: Clock;
  /**
   * Milliseconds for which an address stays reserved after the last revision with its claim is deleted. Default 60,000.
   */
  readonly gracePeriod?: number;
  /**
   * Behaviour before a registered repository has been read, while the addresses of its packages are unknown: `wait`
   * (default) allocates no new address, `ignore` risks allocating an address twice.
   */
  readonly unreadRepositories?: 'wait' | 'ignore';
  /** Called with revisions whose claims cannot be read. */
  readonly onProblem?: (revision: string, message: string) => void;
}

export interface Ipam {
  readonly resolver: Resolver;
  /** Wake the drafts that wait for an address when pools, repositories or other packages change. */
  readonly sources: readonly Source<ObjectKey>[];
}

/** Allocates addresses and prefixes to the IPClaims of drafts; see README.md. */
export function ipamResolver(options: IpamOptions): Ipam {
  const { store, client, clock, gracePeriod = 60_000, onProblem = () => undefined } = options;
  const allocator = new Allocator({ store, clock, gracePeriod, onProblem });
  const waiting = new Map<string, ObjectKey>();
  /** Outcomes by run: later rounds must return the same even if another draft was served meanwhile. */
  const outcomesOfRun = new WeakMap<ResolverContext, Map<string, ClaimOutcome>>();

  async function outcomesOf(
    { revision }: ResolverSubject,
    claims: readonly PackageClaim[],
    context: ResolverContext,
  ): Promise<ClaimOutcome[]> {
    const known = outcomesOfRun.get(context) ?? new Map<string, ClaimOutcome>();
    outcomesOfRun.set(context, known);
    const valid = claims.flatMap(({ key, request }) => ('problem' in request ? [] : [{ key, request }]));
    if (valid.some(({ key }) => !known.has(key))) {
      const pools = await readPools(client, context.signal);
      const unread =
        options.unreadRepositories === 'ignore' ? [] : await unreadRepositories(client, store, context.signal);
      const requests = valid.map(({ request }) => request);
      const outcomes = await allocator.allocate(revisionId(revision), requests, pools, unread.length > 0);
      for (const [place, { key }] of valid.entries())
        known.set(key, outcomes[place] ?? awaiting(unread, allocator.damaged, context.now));
    }
    return claims.map(({ key, request }) =>
      'problem' in request ? invalid(request.problem) : (known.get(key) ?? awaiting([], [], context.now)),
    );
  }

  const resolver: Resolver = {
    name: 'ipam',
    claims: [IP_CLAIM_TYPES],
    applies: (subject) => liveClaims(subject).length > 0 || orphans(subject).length > 0,
    async resolve(subject, context) {
      const { revision } = subject;
      // Before anything is read, since any later change must wake this draft.
      const id = revisionId(revision);
      waiting.set(id, { namespace: revision.namespace, name: revision.name });
      const claims = liveClaims(subject).map((object) => readClaim(object, revision));
      const outcomes = await outcomesOf(subject, claims, context);
      const edits = new Map<string, string>();
      const results: ClaimResult[] = [];
      let retryAt = Number.POSITIVE_INFINITY;
      for (const [place, claim] of claims.entries()) {
        const outcome = outcomes[place] ?? awaiting([], [], context.now);
        retryAt = Math.min(retryAt, outcome.refused?.retryAt ?? retryAt);
        const foreign = !('problem' in claim.request) && allocator.isForeign(claim.request);
        const result = resultFor(claim, outcome, foreign);
        const problem = write(subject, edits, claim.object, result);
        if (problem === undefined) results.push(result);
        else {
          if (!('problem' in claim.request)) allocator.cancel(id, claim.request.owner);
          results.push(resultFor(claim, invalid(problem), false));
        }
      }
      if (results.every(({ status }) => status === 'True')) waiting.delete(id);
      return {
        edits,
        conditions: mergeResults(results).map(({ written: _written, ...condition }) => condition),
        withdraw: orphans(subject),
        gates: requestsGates(subject) ? claims.map(({ type }) => type) : [],
        ...(retryAt === Number.POSITIVE_INFINITY ? {} : { requeueAfter: Math.max(0, retryAt - context.now) }),
      };
    },
  };

  function* stillWaiting(): Generator<ObjectKey> {
    for (const [id, key] of waiting) {
      if (store.find(id)?.lifecycle === 'Draft') yield key;
      else waiting.delete(id);
    }
  }

  /** A released value wakes the waiting drafts, which report the end of its grace period. */
  const releases: Source<ObjectKey> = {
    start({ enqueue, track }) {
      let seen = allocator.releases;
      return store.subscribe((changes) => {
        if (!changes.some(({ before }) => before !== undefined && allocator.hasValues(revisionId(before)))) return;
        track(async () => {
          await allocator.refresh();
          if (allocator.releases === seen) return;
          seen = allocator.releases;
          for (const key of stillWaiting()) enqueue(key);
        });
      });
    },
  };
  return {
    resolver,
    sources: [
      watchKind(ipPrefixKind, { map: stillWaiting }),
      watchKind(networkInstanceKind, { map: stillWaiting }),
      watchKind(repositoryKind, { map: stillWaiting }),
      releases,
    ],
  };
}

function liveClaims({ objects }: ResolverSubject): KrmObject[] {
  return objects.filter((object) => isIpClaim(object) && !isAbandoned(object));
}

/** Condition types of claims that are no longer in the package. */
function orphans({ objects, conditions }: ResolverSubject): string[] {
  const present = new Set(objects.filter(isIpClaim).map(formatConditionType));
  return [...conditions.keys()].filter((type) => matchesPattern(IP_CLAIM_TYPES, type) && !present.has(type));
}

function requestsGates({ kptfile, revision }: ResolverSubject): boolean {
  const places = [revision.record?.annotations, kptfile.metadata?.annotations];
  return places.some((annotations) => annotations?.[GATE_CLAIMS_ANNOTATION] === 'true');
}

/** Writes a status into the edits; returns the problem if the file cannot be edited. */
function write(
  subject: ResolverSubject,
  edits: Map<string, string>,
  { file, index }: KrmObject,
  { written }: ClaimResult,
): string | undefined {
  if (written === undefined) return undefined;
  const text = edits.get(file) ?? subject.files.get(file)?.toString('utf8') ?? '';
  try {
    edits.set(file, setKrmStatus(file, text, index, written.value));
    return undefined;
  } catch (error) {
    return messageOf(error);
  }
}

function invalid(message: string): ClaimOutcome {
  return { refused: { reason: 'InvalidClaim', message } };
}

/** The outcome while some repositories cannot be read: the addresses of their packages are unknown. */
function awaiting(repositories: readonly string[], damaged: readonly string[], now: number): ClaimOutcome {
  if (repositories.length === 0 && damaged.length > 0) {
    const message = `${damaged.join(', ')} cannot be read because the repository is damaged, so an address in use could be allocated twice; repair it, see "sluice repo get"`;
    return { refused: { reason: 'AwaitingRepositories', message, retryAt: now + DAMAGE_RETRY_MS } };
  }
  const message = `the packages of ${repositories.join(', ')} are not read yet, so an address of theirs could be allocated twice; see "sluice repo get"`;
  return { refused: { reason: 'AwaitingRepositories', message } };
}
