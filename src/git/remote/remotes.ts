import { isSluiceError, SluiceError } from '../../foundation/sluice-error.ts';
import type { FetchOptions, GitRemote, PushOutcome, Ref, RefChange, RefUpdate, RemoteNote } from '../git-repository.ts';
import { checkRemoteUrl } from '../network/remote-url.ts';
import type { EngineOptions } from '../process/engine-options.ts';
import { checkRefPrefix } from '../ref-name.ts';
import { checkRefUpdates, expectedValue, movedError, newValue } from '../refs/ref-updates.ts';
import { checkRefspecs } from '../refs/refspec.ts';
import { BuiltInClient, type GitFallback } from './client/built-in-client.ts';
import type { LocalRepository } from './client/local-repository.ts';
import type { GitTransport } from './git/git-transport.ts';

/** Maximum number of updates per push on GitHub with push rules. */
export const MAX_UPDATES = 1_000;

const JOBS = ['fetch', 'push'] as const;
type Job = (typeof JOBS)[number];

/** The transport of a job, and the explanation as the end of a sentence that begins with the job. */
interface TransportChoice {
  readonly by: 'own client' | 'git' | 'none';
  readonly how: string;
}

/** Failures of a probe that only a user can resolve. */
const PERMANENT_CODES: ReadonlySet<string> = new Set(['Unsupported', 'Refused', 'NotFound']);

/**
 * Fetch, listing and push: over HTTP and ssh by Sluice's own client if the server offers what it needs, otherwise by
 * git. Which of them is in use, and why, is noted for each remote.
 */
export class Remotes {
  readonly #options: EngineOptions;
  readonly #local: LocalRepository;
  readonly #git: GitTransport | undefined;
  readonly #clients = new Map<string, BuiltInClient>();
  readonly #choices = new Map<string, Partial<Record<Job, TransportChoice>>>();

  /** Without `git`, jobs that need it are refused. */
  constructor(options: EngineOptions, local: LocalRepository, git: GitTransport | undefined) {
    this.#options = options;
    this.#local = local;
    this.#git = git;
  }

  /** How Sluice connects to the remotes that it has used so far; the message has a line for each. */
  get note(): RemoteNote | undefined {
    if (this.#choices.size === 0) return undefined;
    const lines = [...this.#choices].map(([url, jobs]) => {
      const parts = JOBS.flatMap((job) => (jobs[job] === undefined ? [] : [`${job} ${jobs[job].how}`]));
      return `${url}: ${parts.join('; ')}`;
    });
    const choices = [...this.#choices.values()];
    const byGit = choices.some(({ fetch, push }) => fetch?.by === 'git' || push?.by === 'git');
    const readOnly = choices.some(({ push }) => push?.by === 'none');
    return { way: readOnly ? 'ReadOnly' : byGit ? 'Git' : 'OwnClient', message: lines.sort().join('\n') };
  }

  /**
   * Finds out how to connect to a remote, without a fetch or a push. What prevents pushes is only noted: the remote may be meant
   * for reading. Throws what prevents fetching.
   */
  async probe(remote: GitRemote, signal: AbortSignal | undefined): Promise<void> {
    const { url, client, why } = this.#resolve(remote);
    if (client === undefined) {
      for (const job of JOBS) this.#noteGit(url, job, why);
      this.#requireGit(url, 'fetch', { fallbackReason: why });
      return;
    }
    const problem = await client.fetchProblem(remote, signal);
    if (problem !== undefined) this.#requireGit(url, 'fetch', { fallbackReason: problem });
    if (problem === undefined) this.#noteBuiltIn(url, 'fetch', client);
    else this.#noteGit(url, 'fetch', problem);
    try {
      await client.checkPush(remote, signal);
      this.#noteBuiltIn(url, 'push', client);
    } catch (error) {
      if (!isSluiceError(error)) throw error;
      if (PERMANENT_CODES.has(error.code)) this.#noteUnavailable(url, 'push', error.message);
    }
  }

  async fetch(remote: GitRemote, options: FetchOptions): Promise<RefChange[]> {
    const everything = allRefspecs(options);
    checkRefspecs(options.refspecs);
    checkRefspecs(everything);
    const isLocal = checkRemoteUrl(remote.url, this.#options.network.hosts).protocol === 'file';
    const alone = options.exclusively ?? ((fetch) => fetch());
    return await this.#do(
      remote,
      'fetch',
      (client) => client.fetch(remote, options),
      (git, { isListed = false }) =>
        alone(() => git.fetch(remote, { ...options, refspecs: everything }, isListed || isLocal)),
    );
  }

  async list(remote: GitRemote, prefixes: readonly string[], signal: AbortSignal | undefined): Promise<Ref[]> {
    for (const prefix of prefixes) checkRefPrefix(prefix);
    return await this.#do(
      remote,
      'fetch',
      (client) => client.list(remote, prefixes, signal),
      (git) => git.list(remote, prefixes, signal),
    );
  }

  async push(remote: GitRemote, updates: readonly RefUpdate[], signal: AbortSignal | undefined): Promise<void> {
    await checkRefUpdates(updates);
    if (updates.length > MAX_UPDATES)
      throw new SluiceError('LimitExceeded', `a push changes at most ${MAX_UPDATES} refs, not ${updates.length}`);
    await this.#checkObjects(updates);
    // The protocol cannot express that a ref stays absent; it can only be checked first.
    const absent = updates.filter((update) => update.type === 'verify' && update.old === null);
    const sent = updates.filter((update) => !absent.includes(update));
    const onlyLooks = sent.every(({ type }) => type === 'verify');
    await this.#verify(remote, onlyLooks ? updates : absent, signal);
    if (onlyLooks) return;
    await this.#do<unknown>(
      remote,
      'push',
      (client) => client.push(remote, sent, signal),
      async (git) => {
        await this.#local.flushObjects();
        await git.push(remote, sent, signal);
      },
    );
  }

  async pushOutcome(
    remote: GitRemote,
    updates: readonly RefUpdate[],
    signal: AbortSignal | undefined,
  ): Promise<PushOutcome> {
    await checkRefUpdates(updates);
    const refs = await this.list(
      remote,
      updates.map(({ ref }) => ref),
      signal,
    );
    const values = new Map(refs.map(({ name, oid }) => [name, oid]));
    // Another writer can give a ref the value of this push, but then the other refs are unchanged.
    const isOpen = (update: RefUpdate) =>
      update.type !== 'verify' && (values.get(update.ref) ?? null) === expectedValue(update);
    if (updates.some(isOpen)) return 'not done';
    // The push is atomic: if one ref has the value of this push, all of them had theirs.
    const changing = updates.filter((update) => update.type === 'create' || update.type === 'update');
    if (changing.some((update) => update.new === values.get(update.ref))) return 'done';
    const removed = updates.filter(({ type }) => type === 'delete');
    return changing.length === 0 && removed.every(({ ref }) => !values.has(ref)) ? 'done' : 'not done';
  }

  async close(): Promise<void> {
    await Promise.all([...this.#clients.values()].map((client) => client.close()));
    this.#clients.clear();
  }

  /** Runs a job by the own client if possible, otherwise by git, and notes which. */
  async #do<Result>(
    remote: GitRemote,
    job: Job,
    byOwn: (client: BuiltInClient) => Promise<Result | GitFallback>,
    byGit: (git: GitTransport, left: GitFallback) => Promise<Result>,
  ): Promise<Result> {
    const { url, client, why } = this.#resolve(remote);
    let left: GitFallback = { fallbackReason: why };
    if (client !== undefined) {
      const result = await this.#noting(url, job, () => byOwn(client));
      if (!isGitFallback(result)) {
        this.#noteBuiltIn(url, job, client);
        return result;
      }
      left = result;
    }
    const git = this.#requireGit(url, job, left);
    this.#noteGit(url, job, left.fallbackReason);
    return await this.#noting(url, job, () => byGit(git, left));
  }

  /** The transport by git. If there is none, throws an error with the reason why it is needed. */
  #requireGit(url: string, job: Job, { fallbackReason, isTransient = false }: GitFallback): GitTransport {
    if (this.#git !== undefined) return this.#git;
    const error = new SluiceError(
      isTransient ? 'Unavailable' : 'Unsupported',
      `remote ${url}: ${job} is not possible without git, because ${fallbackReason}. ${isTransient ? 'Try again, or install' : 'Install'} git 2.39 or later`,
    );
    if (!isTransient) this.#noteUnavailable(url, job, error.message);
    throw error;
  }

  /** The address of a remote in its one form, and the own client, or why there is none for it. */
  #resolve(remote: GitRemote): {
    readonly url: string;
    readonly client: BuiltInClient | undefined;
    readonly why: string;
  } {
    const { url, protocol } = checkRemoteUrl(remote.url, this.#options.network.hosts);
    if (protocol === 'file') return { url, client: undefined, why: 'the remote is on this machine' };
    if (protocol === 'ssh' && this.#git === undefined) return { url, client: undefined, why: 'it is reached over ssh' };
    if (this.#options.transport === 'git') return { url, client: undefined, why: 'the transport git was selected' };
    let client = this.#clients.get(url);
    if (client === undefined) {
      client = new BuiltInClient(url, this.#options, this.#local);
      this.#clients.set(url, client);
    }
    return { url, client, why: '' };
  }

  /** Notes that a job cannot be done at all. */
  async #noting<Result>(url: string, job: Job, work: () => Promise<Result>): Promise<Result> {
    try {
      return await work();
    } catch (error) {
      if (isSluiceError(error, 'Unsupported')) this.#noteUnavailable(url, job, error.message);
      throw error;
    }
  }

  #noteBuiltIn(url: string, job: Job, client: BuiltInClient): void {
    this.#note(url, job, { by: 'own client', how: `by ${job === 'push' ? client.pushNote : 'own client'}` });
  }

  #noteGit(url: string, job: Job, why: string): void {
    this.#note(url, job, { by: 'git', how: `by git, because ${why}` });
  }

  #noteUnavailable(url: string, job: Job, why: string): void {
    this.#note(url, job, { by: 'none', how: `not possible: ${why}` });
  }

  #note(url: string, job: Job, way: TransportChoice): void {
    this.#choices.set(url, { ...this.#choices.get(url), [job]: way });
  }

  async #checkObjects(updates: readonly RefUpdate[]): Promise<void> {
    const oids = updates.map(newValue).filter((oid) => oid !== null);
    const stats = await this.#local.statObjects(oids);
    const missing = oids.find((_, index) => stats[index] === undefined);
    if (missing !== undefined)
      throw new SluiceError('NotFound', `${missing} cannot be pushed: the local repository has no such object`);
  }

  /** Compares verifications with what the remote has now. */
  async #verify(remote: GitRemote, updates: readonly RefUpdate[], signal: AbortSignal | undefined): Promise<void> {
    if (updates.length === 0) return;
    const names = updates.map(({ ref }) => ref);
    const values = new Map((await this.list(remote, names, signal)).map(({ name, oid }) => [name, oid]));
    for (const update of updates) {
      if (update.type !== 'verify') continue;
      const actual = values.get(update.ref) ?? null;
      if (actual !== update.old) throw movedError(update.ref, update.old, actual);
    }
  }
}

/** Of what a fetch may change. */
export function allRefspecs({ refspecs, later }: FetchOptions): readonly string[] {
  return later === undefined ? refspecs : [...refspecs, ...later.refspecs];
}

function isGitFallback(result: unknown): result is GitFallback {
  return typeof result === 'object' && result !== null && 'fallbackReason' in result;
}
