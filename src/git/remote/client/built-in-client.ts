import { filterInSlices, inSlices } from '../../../foundation/concurrency/in-slices.ts';
import { isSluiceError, SluiceError } from '../../../foundation/sluice-error.ts';
import { RefConflictError, unknownOutcome } from '../../errors.ts';
import type { FetchOptions, GitRemote, Oid, Ref, RefChange, RefUpdate } from '../../git-repository.ts';
import { writePack } from '../../objects/pack/pack-writer.ts';
import type { EngineOptions } from '../../process/engine-options.ts';
import { compareWithRemote, isUnexplained, partialPushError, rejectionError } from '../../refs/push-conflict.ts';
import { ancestors, expectedValue, newValue } from '../../refs/ref-updates.ts';
import { checkRefspecs } from '../../refs/refspec.ts';
import { sortedByName } from '../../refs/sorted-by-name.ts';
import type { Capabilities } from '../protocol/advertisement.ts';
import { type Call, withinCall } from '../protocol/call.ts';
import { isAsExpected, mustListFirst, NotAsExpectedError, remainingUpdates } from '../protocol/push-expectation.ts';
import { missingPushCapabilities, needsPack, type PushReport } from '../protocol/receive-pack.ts';
import { failureOf } from '../protocol/request-failure.ts';
import { changeOf, havesFor, type Mapping, mappingsOf, missingSource, planUpdates, prefixesOf } from './fetch-plan.ts';
import { KnownTips } from './known-tips.ts';
import type { LocalRepository } from './local-repository.ts';
import { collectNewObjects } from './new-objects.ts';
import { RemoteServer } from './remote-server.ts';

/** Above this number of wants, git does the fetch, since it negotiates common commits. */
const MAX_WANTS = 1_000;
/** Without git, all of a repository is fetched in one request: 1,000 packages with three revisions each have 3,600 refs. */
const MAX_WANTS_WITHOUT_GIT = 20_000;
/** Attempts of a fetch while other writers change local refs, and of a push of which a part turns out to be done. */
const MAX_ATTEMPTS = 3;
/** Refs at which git ends its walk, for a pack that is too large to be made in memory. */
const MAX_WALK_ENDS = 50_000;

const OTHER_REFS = 'the refs of the server are not as expected';

/** A job that Sluice's own client leaves to git, because git does it better or only git can. */
export interface GitFallback {
  readonly fallbackReason: string;
  /** True if the refs of the remote were listed, so that their number is known to be below the limit. */
  readonly isListed?: boolean;
  /** True if the cause may be resolved at the next attempt. */
  readonly isTransient?: boolean;
}

/** A pack that is created later. */
interface NewPack {
  /** Objects that the pack omits, with everything below them, because the remote is assumed to have them. */
  readonly assumed: ReadonlySet<Oid>;
  /** Returns the input of the push; undefined if it needs no pack. */
  readonly createPack: () => Promise<(() => Uint8Array | AsyncIterable<Uint8Array>) | undefined>;
}

interface RefDelta {
  /** The local refs that are concerned. */
  readonly ours: readonly Ref[];
  readonly updates: readonly RefUpdate[];
}

/**
 * Sluice's own client for one remote: fetch, listing and push over HTTP or ssh, in as few requests and bytes as the protocol
 * allows.
 */
export class BuiltInClient {
  readonly #options: EngineOptions;
  readonly #local: LocalRepository;
  readonly #server: RemoteServer;
  readonly #known: KnownTips;

  /** `url` has been checked. */
  constructor(url: string, options: EngineOptions, local: LocalRepository) {
    this.#options = options;
    this.#local = local;
    this.#server = new RemoteServer(url, options);
    this.#known = new KnownTips(() => local.listRefs([]));
  }

  /** How pushes are sent. Human-readable. */
  get pushNote(): string {
    return this.#server.listsBeforePush ? 'own client, listing the refs before each push' : 'own client';
  }

  /** Returns why git has to fetch and list; undefined if this client can. */
  fetchProblem(remote: GitRemote, signal: AbortSignal | undefined): Promise<string | undefined> {
    return this.#within('reading its capabilities', 'listRemote', remote, signal, (call) =>
      this.#server.readProblem(call),
    );
  }

  /** Throws the errors of a push that are detected before anything is sent. */
  async checkPush(remote: GitRemote, signal: AbortSignal | undefined): Promise<void> {
    await this.#within('reading its capabilities', 'listRemote', remote, signal, (call) => this.#offers(call));
  }

  list(remote: GitRemote, prefixes: readonly string[], signal: AbortSignal | undefined): Promise<Ref[] | GitFallback> {
    return this.#within('listing refs', 'listRemote', remote, signal, async (call): Promise<Ref[] | GitFallback> => {
      const problem = await this.#server.readProblem(call);
      if (problem !== undefined) return { fallbackReason: problem };
      const refs = await this.#server.listRefs(call, prefixes);
      await this.#known.addRefs(refs);
      const isWanted = ({ name }: Ref) => prefixes.length === 0 || prefixes.some((prefix) => name.startsWith(prefix));
      return await sortedByName(await filterInSlices(refs, isWanted));
    });
  }

  /** The refspecs have been checked. */
  async fetch(remote: GitRemote, options: FetchOptions): Promise<RefChange[] | GitFallback> {
    const { refspecs, later, prune = false } = options;
    const first = mappingsOf(refspecs);
    const rest = mappingsOf(later?.refspecs ?? []);
    if (first === undefined || rest === undefined)
      return { fallbackReason: 'a refspec requests more than mirroring refs' };
    return await this.#within(
      'fetch',
      'fetch',
      remote,
      options.signal,
      async (call): Promise<RefChange[] | GitFallback> => {
        const problem = await this.#server.readProblem(call);
        if (problem !== undefined) return { fallbackReason: problem };
        for (let attempt = 1; ; attempt += 1) {
          try {
            const delta = await this.#compare(call, first, prune);
            if (later === undefined || !later.isNeeded(delta.updates.map(changeOf)))
              return await this.#fetchAndApply(call, delta, prune);
            // In one call, so that the values belong together.
            return await this.#fetchAndApply(call, await this.#compare(call, [...first, ...rest], prune), prune);
          } catch (error) {
            const overtaken = error instanceof RefConflictError && error.details?.kind === 'moved';
            if (!overtaken || attempt >= MAX_ATTEMPTS) throw error;
          }
        }
      },
    );
  }

  /**
   * Pushes checked updates whose objects exist; none may verify that a ref is absent. A ref that has its new value counts as done.
   * The objects are written to the disk meanwhile. Throws Unsupported, before anything is sent, for a server that does not offer
   * what an atomic push needs.
   */
  push(
    remote: GitRemote,
    updates: readonly RefUpdate[],
    signal: AbortSignal | undefined,
  ): Promise<'done' | GitFallback> {
    return this.#within('push', 'push', remote, signal, async (call): Promise<'done' | GitFallback> => {
      const offered = await this.#offers(call);
      let commands = updates;
      let isListed = false;
      let partialError: SluiceError | undefined;
      try {
        for (let attempt = 1; ; attempt += 1) {
          const report = await this.#send(call, commands, offered, isListed);
          if (report?.rejections.length === 0) {
            this.#known.add(updates.map(newValue).filter((oid) => oid !== null));
            return 'done';
          }
          if (report !== undefined) partialError ??= this.#partialErrorOf(call, commands, report);
          const incomplete = report === undefined ? OTHER_REFS : unpackProblem(report);
          let rest: 'done' | readonly RefUpdate[];
          if (report !== undefined && incomplete === undefined) {
            if (partialError !== undefined) throw partialError;
            rest = await this.#remaining(call, commands, report);
            if (rest !== 'done' && attempt >= MAX_ATTEMPTS)
              throw rejectionError(report.rejections, commands, report.serverOutput);
          } else if (isListed || (await this.#server.readProblem(call)) !== undefined) {
            if (partialError !== undefined) throw partialError;
            this.#known.clear();
            return { fallbackReason: incomplete ?? OTHER_REFS, isTransient: true };
          } else {
            rest = await this.#refreshKnownTips(call, commands);
            isListed = true;
          }
          if (rest === 'done') return 'done';
          commands = rest;
        }
      } catch (error) {
        // Report the earlier error in any case: the caller must know that a part was applied.
        throw partialError ?? error;
      }
    });
  }

  close(): Promise<void> {
    return this.#server.close();
  }

  #within<Result>(
    name: string,
    limit: 'fetch' | 'listRemote' | 'push',
    remote: GitRemote,
    signal: AbortSignal | undefined,
    job: (call: Call) => Promise<Result>,
  ): Promise<Result> {
    const { clock, timeouts } = this.#options;
    return withinCall({ clock, remote, name, timeout: timeouts[limit], signal }, job);
  }

  async #offers(call: Call): Promise<Capabilities> {
    const offered = await this.#server.pushCapabilities(call);
    const lacking = missingPushCapabilities(offered);
    if (lacking === undefined) return offered;
    // Requested again the next time: the server can be reconfigured.
    this.#server.forgetPushCapabilities();
    throw new SluiceError(
      'Unsupported',
      `cannot push to remote ${call.remote.url}: ${lacking}, and a push must be atomic`,
    );
  }

  /** Returns the error of a push of which a part was applied; undefined if all or none was. */
  #partialErrorOf(
    { remote }: Call,
    updates: readonly RefUpdate[],
    { rejections }: PushReport,
  ): SluiceError | undefined {
    const refused = new Set(rejections.map(({ ref }) => ref));
    const changed = updates.filter(({ type, ref }) => type !== 'verify' && !refused.has(ref)).map(({ ref }) => ref);
    const error = partialPushError(remote.url, changed, rejections);
    if (error !== undefined) this.#server.forgetPushCapabilities();
    return error;
  }

  /** Lists the remote and returns the local changes that it requires. */
  async #compare(call: Call, mappings: readonly Mapping[], prune: boolean): Promise<RefDelta> {
    const side = checkRefspecs(mappings.map(({ source, target }) => `+${source}:${target}`));
    // In this order: a ref that a push adds meanwhile must not look like one that the remote does not have.
    const all = await this.#local.listRefs(side.prefixes);
    const theirs = await this.#server.listRefs(call, prefixesOf(mappings));
    await this.#known.addRefs(theirs);
    const missing = missingSource(mappings, theirs);
    if (missing !== undefined)
      throw new SluiceError('NotFound', `remote ${call.remote.url} lacks a requested ref: ${missing}`);
    const ours = await filterInSlices(all, ({ name }) => side.covers(name));
    return { ours, updates: await planUpdates(mappings, theirs, ours, prune) };
  }

  /** Fetches missing objects and changes the refs. */
  async #fetchAndApply(call: Call, { ours, updates }: RefDelta, prune: boolean): Promise<RefChange[] | GitFallback> {
    const wants = await this.#absent(updates);
    const { withoutGit } = this.#local;
    const exceedsLimit = withoutGit
      ? wants.length > MAX_WANTS_WITHOUT_GIT
      : wants.length > MAX_WANTS || (wants.length > 0 && ours.length === 0);
    if (exceedsLimit) return { fallbackReason: 'there is much to fetch', isListed: true };
    if (wants.length > 0) {
      const take = (pack: AsyncIterable<Uint8Array>, signal: AbortSignal) => this.#local.indexPack(pack, signal);
      await this.#server.fetchPack(call, { wants, haves: havesFor(updates, ours), thin: !withoutGit }, take);
      const [missing] = await this.#absent(updates);
      if (missing !== undefined)
        throw new SluiceError('Unavailable', `remote ${call.remote.url} names ${missing} and does not send it`);
    }
    await this.#apply(updates, prune);
    return await sortedByName(updates.map(changeOf));
  }

  /** The new values that are not here. */
  async #absent(updates: readonly RefUpdate[]): Promise<Oid[]> {
    const distinct = new Set<Oid>();
    await inSlices(updates, (update) => {
      if ('new' in update) distinct.add(update.new);
    });
    const oids = [...distinct];
    const stats = await this.#local.statObjects(oids);
    return oids.filter((_, index) => stats[index] === undefined);
  }

  async #apply(updates: readonly RefUpdate[], prune: boolean): Promise<void> {
    if (updates.length === 0) return;
    try {
      await this.#local.transaction(updates);
    } catch (error) {
      // A ref replaces a folder whose refs are deleted, or the other way round: Git does not accept both in one
      // transaction.
      const collides = error instanceof RefConflictError && error.details?.kind === 'collision';
      const removed = updates.filter(({ type }) => type === 'delete');
      if (!collides || !prune || removed.length === 0) throw error;
      await this.#local.transaction(removed);
      await this.#local.transaction(updates.filter(({ type }) => type !== 'delete'));
    }
  }

  /**
   * Returns the server's report; undefined, with nothing sent, if the remote is not as the push expects. `isListed` if its refs were
   * just listed.
   */
  async #send(
    call: Call,
    updates: readonly RefUpdate[],
    offered: Capabilities,
    isListed: boolean,
  ): Promise<PushReport | undefined> {
    const { assumed, createPack } = await this.#packFor(updates);
    const expect = (refs: readonly Ref[]) => {
      if (!isAsExpected(updates, assumed, refs)) throw new NotAsExpectedError(call.remote.url);
    };
    const checkRefs = !isListed && mustListFirst(updates) ? expect : undefined;
    try {
      const listing =
        checkRefs === undefined || this.#server.advertisesFirst ? undefined : this.#listRefsOf(call, updates, assumed);
      const [pack] = await Promise.all([createPack(), this.#local.flushObjects(), listing?.then(checkRefs)]);
      return await this.#server.push(call, updates, offered, pack, checkRefs);
    } catch (error) {
      if (error instanceof NotAsExpectedError) return undefined;
      if (isSluiceError(error) && failureOf(error).mayBeApplied) throw unknownOutcome(error);
      throw error;
    }
  }

  /** The remote's refs of a push, and those whose values the remote is assumed to have. */
  async #listRefsOf(call: Call, updates: readonly RefUpdate[], assumed: ReadonlySet<Oid>): Promise<readonly Ref[]> {
    if ((await this.#server.readProblem(call)) !== undefined) return [];
    const olds = new Set(updates.map(expectedValue));
    const unlisted = new Set([...assumed].filter((oid) => !olds.has(oid)));
    const localRefs =
      unlisted.size === 0 ? [] : (await this.#local.listRefs([])).filter(({ oid }) => unlisted.delete(oid));
    return await this.#server.listRefs(
      call,
      [...updates, ...localRefs.map(({ name: ref }) => ({ ref }))].map(({ ref }) => ref),
    );
  }

  /** Records the actual refs of the remote. Returns the remaining updates, or throws the conflict. */
  async #refreshKnownTips(call: Call, updates: readonly RefUpdate[]): Promise<'done' | readonly RefUpdate[]> {
    const refs = await this.#server.listRefs(call, []);
    this.#known.replace(refs.map(({ oid }) => oid));
    return remainingUpdates(updates, refs);
  }

  /** Plans the pack of a push. */
  async #packFor(updates: readonly RefUpdate[]): Promise<NewPack> {
    const assumed = new Set<Oid>();
    if (!needsPack(updates)) return { assumed, createPack: async () => undefined };
    const known = await this.#known.current();
    const olds = new Set(updates.map(expectedValue));
    const tips = [...new Set(updates.flatMap((update) => ('new' in update ? [update.new] : [])))];
    const isOnRemote = (oid: Oid) => {
      if (!olds.has(oid) && !known.has(oid)) return false;
      assumed.add(oid);
      return true;
    };
    const objects = await collectNewObjects(this.#local, tips, isOnRemote);
    if (objects !== undefined)
      return {
        assumed,
        createPack: async () => {
          const { bytes: pack } = await writePack(objects);
          return () => pack;
        },
      };
    if (this.#local.withoutGit)
      throw new SluiceError(
        'LimitExceeded',
        'cannot push: without git the maximum is 10,000 objects, 1,000 commits and 32 MiB at once. Push less at once, or install git 2.39 or later',
      );
    // A removal must not be applied in part: then git gets only the refs that are checked.
    const isEnd = mustListFirst(updates)
      ? (oid: Oid) => olds.has(oid) || assumed.has(oid)
      : (oid: Oid) => known.has(oid);
    const refs = (await this.#local.listRefs([])).filter(({ oid }) => isEnd(oid)).slice(0, MAX_WALK_ENDS);
    const ends = [...new Set(refs.map(({ oid }) => oid))].filter((oid) => !tips.includes(oid));
    return { assumed, createPack: async () => () => this.#local.streamPack(tips, ends) };
  }

  /** Returns the remaining updates of a refused push, or throws the reason. */
  async #remaining(
    call: Call,
    updates: readonly RefUpdate[],
    report: PushReport,
  ): Promise<'done' | readonly RefUpdate[]> {
    const { rejections, serverOutput } = report;
    // Always listed first: a server may report a rule before it compares values, and a rule may reject a change that was already applied.
    if ((await this.#server.readProblem(call)) !== undefined) throw rejectionError(rejections, updates, serverOutput);
    const names = updates.map(({ ref }) => ref);
    const refs = await this.#server.listRefs(call, names);
    const rest = remainingUpdates(updates, refs);
    if (rest === 'done') return rest;
    const unapplied = rest.filter((update, index) => update === updates[index]);
    const folders = [...new Set(unapplied.flatMap(({ type, ref }) => (type === 'create' ? ancestors(ref) : [])))];
    const folderConflict =
      folders.length === 0 || !isUnexplained(rejections)
        ? undefined
        : compareWithRemote(unapplied, await this.#server.listRefs(call, [...names, ...folders]));
    if (folderConflict !== undefined) throw folderConflict;
    if (unapplied.length === updates.length) throw rejectionError(rejections, updates, serverOutput);
    return rest;
  }
}

/**
 * Returns why the server could not unpack the pack, possibly because it lacks objects that it was assumed to have; undefined
 * if it could.
 */
function unpackProblem({ unpack, rejections }: PushReport): string | undefined {
  if (unpack !== 'ok') return `the server could not unpack the pack (${unpack.slice(0, 100)})`;
  return rejections.some(({ reason }) => /^missing necessary objects/.test(reason))
    ? 'the server lacks objects that it was assumed to have'
    : undefined;
}
