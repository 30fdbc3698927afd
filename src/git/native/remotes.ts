import { isSluiceError, SluiceError } from '../../foundation/sluice-error.ts';
import type { EngineOptions } from '../engine-options.ts';
import { RefConflictError } from '../errors.ts';
import type { FetchOptions, GitRemote, ObjectStat, Ref, RefChange, RefUpdate } from '../git-repository.ts';
import { isOid } from '../object-id.ts';
import { checkRefPrefix } from '../ref-name.ts';
import { checkRefUpdates, expectedValue, moved, newValue } from '../ref-updates.ts';
import { type GitResult, runGit } from './git-process.ts';
import { parsePushReport, pushConflict } from './push-report.ts';
import { checkRefspecs } from './refspec.ts';
import { remoteError } from './remote-error.ts';
import { checkRemoteUrl } from './remote-url.ts';
import { updateRefError } from './update-ref-error.ts';

/** Redirects would carry credentials elsewhere. A transfer below the limit (bytes per second, for so many seconds) ends. */
const SETTINGS = [
  'http.followRedirects=false',
  'http.lowSpeedLimit=1000',
  'http.lowSpeedTime=30',
  'http.sslVerify=true',
  'protocol.version=2',
  'push.followTags=false',
  'push.gpgSign=false',
  'push.recurseSubmodules=no',
];

/** Git asks its credential helper through a shell. This one is fixed text and passes on what stands on file descriptor 3. */
const CREDENTIALS_FROM_FD_3 = 'credential.helper=!f() { test "$1" = get && cat <&3; }; f';

/** A push names every ref in its arguments. */
const MOST_UPDATES = 2_000;

const UNKNOWN_OUTCOME = '; whether its refs changed is not known: list them';

interface LocalRepository {
  listRefs(prefixes: readonly string[]): Promise<Ref[]>;
  statObjects(specifications: readonly string[]): Promise<(ObjectStat | undefined)[]>;
  /** Brings the objects that were written so far to the disk. */
  flushObjects(): Promise<void>;
}

interface RemoteCall {
  readonly arguments: readonly string[];
  /** Goes behind the address of the remote. */
  readonly operands?: readonly string[];
  readonly input?: string;
  readonly timeout: number;
  readonly signal: AbortSignal | undefined;
}

/** Fetch, listing and push: one git process for each call, with nothing of the remote stored in the repository. */
export class Remotes {
  readonly #gitDir: string;
  readonly #options: EngineOptions;
  readonly #local: LocalRepository;

  constructor(gitDir: string, options: EngineOptions, local: LocalRepository) {
    this.#gitDir = gitDir;
    this.#options = options;
    this.#local = local;
  }

  async fetch(remote: GitRemote, options: FetchOptions): Promise<RefChange[]> {
    const side = checkRefspecs(options.refspecs);
    const before = await this.#local.listRefs(side.prefixes);
    try {
      await this.#fetch(remote, options, ['--atomic']);
    } catch (error) {
      // A ref in place of a folder whose refs are gone: Git does both in one transaction only where it prunes first.
      const collides = error instanceof RefConflictError && error.details?.kind === 'collision';
      if (!collides || options.prune !== true) throw error;
      await this.#fetch(remote, options, []);
    }
    const after = await this.#local.listRefs(side.prefixes);
    return changes(before, after).filter(({ name }) => side.covers(name));
  }

  async list(remote: GitRemote, prefixes: readonly string[], signal: AbortSignal | undefined): Promise<Ref[]> {
    for (const prefix of prefixes) checkRefPrefix(prefix);
    const { code, stdout, stderr } = await this.#call(remote, {
      arguments: ['ls-remote', '--quiet', '--refs', ...kindsOf(prefixes)],
      timeout: this.#options.timeouts.listRemote,
      signal,
    });
    if (code !== 0) throw remoteError(remote.url, stderr);
    const refs: Ref[] = [];
    for (const line of stdout.toString('utf8').split('\n')) {
      const [oid = '', name = ''] = line.split('\t');
      const wanted = prefixes.length === 0 || prefixes.some((prefix) => name.startsWith(prefix));
      if (wanted && name.startsWith('refs/') && isOid(oid)) refs.push({ name, oid });
    }
    return refs.sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  async push(remote: GitRemote, updates: readonly RefUpdate[], signal: AbortSignal | undefined): Promise<void> {
    checkRefUpdates(updates);
    if (updates.length > MOST_UPDATES)
      throw new SluiceError('LimitExceeded', `a push changes at most ${MOST_UPDATES} refs, not ${updates.length}`);
    await this.#checkObjects(updates);
    // There is no way to ask a server that a ref stays absent; what can be done is to look first.
    const absent = updates.filter((update) => update.type === 'verify' && update.old === null);
    if (absent.length > 0) await this.#checkAbsent(remote, absent, signal);
    const sent = updates.filter((update) => !absent.includes(update));
    if (sent.length === 0) return;
    await this.#local.flushObjects();

    const { code, stdout, stderr } = await this.#pushCall(remote, sent, signal);
    if (code === 0) return;
    const rejections = parsePushReport(stdout.toString('utf8'));
    if (rejections.length === 0) throw remoteError(remote.url, stderr, UNKNOWN_OUTCOME);
    throw await pushConflict(rejections, sent, stderr, () => this.list(remote, [], signal));
  }

  async #fetch(remote: GitRemote, options: FetchOptions, more: readonly string[]): Promise<void> {
    const { code, stderr } = await this.#call(remote, {
      arguments: [
        'fetch',
        '--no-tags',
        '--no-recurse-submodules',
        '--no-write-fetch-head',
        '--no-auto-maintenance',
        '--no-progress',
        options.prune === true ? '--prune' : '--no-prune',
        ...more,
        '--stdin',
      ],
      input: `${options.refspecs.join('\n')}\n`,
      timeout: this.#options.timeouts.fetch,
      signal: options.signal,
    });
    if (code !== 0) throw fetchError(remote.url, stderr);
  }

  async #pushCall(
    remote: GitRemote,
    updates: readonly RefUpdate[],
    signal: AbortSignal | undefined,
  ): Promise<GitResult> {
    const leases = updates.map((update) => `--force-with-lease=${update.ref}:${expectedValue(update) ?? ''}`);
    try {
      return await this.#call(remote, {
        arguments: ['push', '--porcelain', '--atomic', '--no-verify', '--no-progress', ...leases],
        operands: updates.map((update) => `${newValue(update) ?? ''}:${update.ref}`),
        timeout: this.#options.timeouts.push,
        signal,
      });
    } catch (error) {
      if (!isSluiceError(error, 'Timeout') && !isSluiceError(error, 'Unavailable')) throw error;
      throw new SluiceError(error.code, `${error.message}${UNKNOWN_OUTCOME}`, { cause: error });
    }
  }

  async #checkObjects(updates: readonly RefUpdate[]): Promise<void> {
    const oids = updates.map(newValue).filter((oid) => oid !== null);
    const stats = await this.#local.statObjects(oids);
    const missing = oids.find((_, index) => stats[index] === undefined);
    if (missing !== undefined)
      throw new SluiceError('NotFound', `${missing} cannot be pushed: there is no such object here`);
  }

  async #checkAbsent(remote: GitRemote, absent: readonly RefUpdate[], signal: AbortSignal | undefined): Promise<void> {
    const names = absent.map(({ ref }) => ref);
    const refs = await this.list(remote, names, signal);
    const found = refs.find(({ name }) => names.includes(name));
    if (found !== undefined) throw moved(found.name, null, found.oid);
  }

  async #call(remote: GitRemote, call: RemoteCall): Promise<GitResult> {
    const { url, protocol } = checkRemoteUrl(remote.url, this.#options.allowInsecureHttp === true);
    const secret = protocol === 'file' ? undefined : await readCredentials(remote);
    return await runGit({
      gitDir: this.#gitDir,
      settings: secret === undefined ? SETTINGS : [...SETTINGS, CREDENTIALS_FROM_FD_3],
      arguments: [...call.arguments, '--end-of-options', url, ...(call.operands ?? [])],
      allowedProtocol: protocol,
      clock: this.#options.clock,
      timeout: call.timeout,
      signal: call.signal,
      input: call.input ?? '',
      secret,
    });
  }
}

/** Credentials in the line format of Git's helpers. */
async function readCredentials(remote: GitRemote): Promise<string | undefined> {
  if (remote.credentials === undefined) return undefined;
  const { username, password } = await remote.credentials();
  if (/[\n\r\0]/.test(username + password))
    throw new SluiceError('InvalidInput', 'user name or password of a remote contains a line break');
  return `username=${username}\npassword=${password}\n`;
}

/** What limits the listing on the server's side, where all prefixes are of one kind. */
function kindsOf(prefixes: readonly string[]): string[] {
  const kinds = new Set<string>();
  for (const prefix of prefixes) {
    if (prefix.startsWith('refs/heads/')) kinds.add('--heads');
    else if (prefix.startsWith('refs/tags/')) kinds.add('--tags');
    else return [];
  }
  return [...kinds];
}

function fetchError(url: string, stderr: string): SluiceError {
  const lock = /cannot (?:lock|update) ref '.*/s.exec(stderr);
  if (lock !== null) return updateRefError(lock[0], []);
  if (/! \[rejected\].*\(non-fast-forward\)/.test(stderr))
    return new RefConflictError(
      { ref: undefined, kind: 'moved' },
      `remote ${url} has refs that do not descend from the local ones: a refspec with "+" takes them as they are`,
    );
  return remoteError(url, stderr);
}

function changes(before: readonly Ref[], after: readonly Ref[]): RefChange[] {
  const old = new Map(before.map(({ name, oid }) => [name, oid]));
  const found: RefChange[] = [];
  for (const { name, oid } of after) {
    const previous = old.get(name);
    old.delete(name);
    if (previous !== oid) found.push({ name, before: previous, after: oid });
  }
  for (const [name, oid] of old) found.push({ name, before: oid, after: undefined });
  return found.sort((a, b) => (a.name < b.name ? -1 : 1));
}
