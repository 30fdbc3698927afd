import { SluiceError } from '../foundation/sluice-error.ts';
import type { EngineOptions } from './engine-options.ts';
import type { FetchOptions, GitRemote, PushOutcome, Ref, RefChange, RefUpdate } from './git-repository.ts';
import type { GitTransport } from './native/git-transport.ts';
import { checkRefPrefix } from './ref-name.ts';
import { checkRefUpdates, moved, newValue } from './ref-updates.ts';
import { checkRefspecs } from './refspec.ts';
import { checkRemoteUrl } from './remote-url.ts';
import { HttpTransport, type LeftToGit } from './transport/http-transport.ts';
import type { LocalRepository } from './transport/local-repository.ts';

const MOST_UPDATES = 2_000;

type Job = 'fetch' | 'push';

/**
 * Fetch, listing and push: over HTTP by the client of this house, as far as the server offers what that needs, and else by git. Which
 * of them is in use, and why, is kept for each remote.
 */
export class Remotes {
  readonly #options: EngineOptions;
  readonly #local: LocalRepository;
  readonly #git: GitTransport;
  readonly #http = new Map<string, HttpTransport>();
  readonly #notes = new Map<string, Partial<Record<Job, string>>>();

  constructor(options: EngineOptions, local: LocalRepository, git: GitTransport) {
    this.#options = options;
    this.#local = local;
    this.#git = git;
  }

  /** How remotes are talked to, as far as that was needed so far; one sentence for people. */
  get note(): string | undefined {
    const notes = [...this.#notes].map(
      ([url, jobs]) =>
        `${url}: ${Object.entries(jobs)
          .map(([job, how]) => `${job} by ${how}`)
          .join('; ')}`,
    );
    return notes.length === 0 ? undefined : notes.sort().join('\n');
  }

  async fetch(remote: GitRemote, options: FetchOptions): Promise<RefChange[]> {
    const everything = allRefspecs(options);
    checkRefspecs(options.refspecs);
    checkRefspecs(everything);
    const http = this.#httpFor(remote);
    const changes = http === undefined ? undefined : await http.fetch(remote, options);
    if (!this.#isLeft(remote, 'fetch', changes, 'own client')) return changes;
    return this.#git.fetch(remote, { ...options, refspecs: everything });
  }

  async list(remote: GitRemote, prefixes: readonly string[], signal: AbortSignal | undefined): Promise<Ref[]> {
    for (const prefix of prefixes) checkRefPrefix(prefix);
    const http = this.#httpFor(remote);
    const refs = http === undefined ? undefined : await http.list(remote, prefixes, signal);
    if (!this.#isLeft(remote, 'fetch', refs, 'own client')) return refs;
    return this.#git.list(remote, prefixes, signal);
  }

  async push(remote: GitRemote, updates: readonly RefUpdate[], signal: AbortSignal | undefined): Promise<void> {
    checkRefUpdates(updates);
    if (updates.length > MOST_UPDATES)
      throw new SluiceError('LimitExceeded', `a push changes at most ${MOST_UPDATES} refs, not ${updates.length}`);
    await this.#checkObjects(updates);
    // There is no way to ask a server that a ref stays absent; what can be done is to look first.
    const absent = updates.filter((update) => update.type === 'verify' && update.old === null);
    const sent = updates.filter((update) => !absent.includes(update));
    const onlyLooks = sent.every(({ type }) => type === 'verify');
    await this.#verify(remote, onlyLooks ? updates : absent, signal);
    if (onlyLooks) return;
    const http = this.#httpFor(remote);
    const done = http === undefined ? undefined : await http.push(remote, sent, signal);
    if (!this.#isLeft(remote, 'push', done, http?.pushNote ?? '')) return;
    await this.#local.flushObjects();
    await this.#git.push(remote, sent, signal);
  }

  async pushOutcome(
    remote: GitRemote,
    updates: readonly RefUpdate[],
    signal: AbortSignal | undefined,
  ): Promise<PushOutcome> {
    checkRefUpdates(updates);
    const refs = await this.list(
      remote,
      updates.map(({ ref }) => ref),
      signal,
    );
    const values = new Map(refs.map(({ name, oid }) => [name, oid]));
    // All or nothing: where one ref has a value that only this push gives, all had theirs.
    const changing = updates.filter((update) => update.type === 'create' || update.type === 'update');
    if (changing.some((update) => update.new === values.get(update.ref))) return 'done';
    return changing.length === 0 && updates.every(({ ref }) => !values.has(ref)) ? 'done' : 'not done';
  }

  async close(): Promise<void> {
    await Promise.all([...this.#http.values()].map((transport) => transport.close()));
    this.#http.clear();
  }

  #httpFor(remote: GitRemote): HttpTransport | undefined {
    const { url, protocol } = checkRemoteUrl(remote.url, this.#options.allowInsecureHttp === true);
    if (protocol === 'file' || this.#options.transport === 'git') return undefined;
    let transport = this.#http.get(url);
    if (transport === undefined) {
      transport = new HttpTransport(url, this.#options, this.#local);
      this.#http.set(url, transport);
    }
    return transport;
  }

  /** True if git has to do it: `result` is undefined where nothing else could be tried. Notes which of both does. */
  #isLeft<Result>(
    remote: GitRemote,
    job: Job,
    result: Result | LeftToGit | undefined,
    own: string,
  ): result is LeftToGit | undefined {
    const { url, protocol } = checkRemoteUrl(remote.url, this.#options.allowInsecureHttp === true);
    const why =
      result === undefined
        ? protocol === 'file'
          ? 'the remote is on this machine'
          : 'it was asked for'
        : isLeftToGit(result)
          ? result.leftToGit
          : undefined;
    this.#notes.set(url, { ...this.#notes.get(url), [job]: why === undefined ? own : `git, because ${why}` });
    return why !== undefined;
  }

  async #checkObjects(updates: readonly RefUpdate[]): Promise<void> {
    const oids = updates.map(newValue).filter((oid) => oid !== null);
    const stats = await this.#local.statObjects(oids);
    const missing = oids.find((_, index) => stats[index] === undefined);
    if (missing !== undefined)
      throw new SluiceError('NotFound', `${missing} cannot be pushed: there is no such object here`);
  }

  /** Compares verifications with what the remote has now. */
  async #verify(remote: GitRemote, updates: readonly RefUpdate[], signal: AbortSignal | undefined): Promise<void> {
    if (updates.length === 0) return;
    const names = updates.map(({ ref }) => ref);
    const values = new Map((await this.list(remote, names, signal)).map(({ name, oid }) => [name, oid]));
    for (const update of updates) {
      if (update.type !== 'verify') continue;
      const actual = values.get(update.ref) ?? null;
      if (actual !== update.old) throw moved(update.ref, update.old, actual);
    }
  }
}

function allRefspecs({ refspecs, later }: FetchOptions): readonly string[] {
  return later === undefined ? refspecs : [...refspecs, ...later.refspecs];
}

function isLeftToGit(result: unknown): result is LeftToGit {
  return typeof result === 'object' && result !== null && 'leftToGit' in result;
}
