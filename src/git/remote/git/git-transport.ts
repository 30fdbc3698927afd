import { isIP } from 'node:net';
import { inSlices } from '../../../foundation/concurrency/in-slices.ts';
import { isSluiceError, type SluiceError } from '../../../foundation/sluice-error.ts';
import { cleanText, toOneLine } from '../../../foundation/text/clean-text.ts';
import { diskFull, isDiskFullMessage, requireFreeSpace } from '../../disk/disk-room.ts';
import { RefConflictError, unknownOutcome } from '../../errors.ts';
import type { FetchOptions, GitCredentials, GitRemote, Ref, RefChange, RefUpdate } from '../../git-repository.ts';
import { trustedAuthorities } from '../../network/certificate-authorities.ts';
import type { Endpoint, HostRules } from '../../network/host-rules.ts';
import { usesProxy } from '../../network/proxies.ts';
import { readCredentials, readSshCredentials } from '../../network/remote-credentials.ts';
import { checkRemoteUrl } from '../../network/remote-url.ts';
import { isOid } from '../../objects/object-id.ts';
import type { EngineOptions } from '../../process/engine-options.ts';
import { type GitResult, runGit } from '../../process/git-process.ts';
import { connectPinned, reportsUnreachable } from '../../process/pinned-host.ts';
import { withPrivateFiles } from '../../process/private-files.ts';
import { remoteError } from '../../process/remote-error.ts';
import { withSshConfig } from '../../process/ssh-config.ts';
import { sshError } from '../../process/ssh-error.ts';
import { linesOf } from '../../refs/lines-of.ts';
import { compareWithRemote, isUnexplained, partialPushError, rejectionError } from '../../refs/push-conflict.ts';
import { changesBetween, expectedValue, newValue } from '../../refs/ref-updates.ts';
import { checkRefspecs } from '../../refs/refspec.ts';
import { sortedByName } from '../../refs/sorted-by-name.ts';
import { updateRefError } from '../../refs/update-ref-error.ts';
import { MAX_REF_LIST_BYTES, MAX_REMOTE_REFS, tooManyRefs } from '../protocol/ref-list-limit.ts';
import { parsePushReport, remoteOutput } from './push-report.ts';

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

/** Git runs its credential helper through a shell. This one is fixed text and passes on the content of file descriptor 3. */
const CREDENTIALS_FROM_FD_3 = 'credential.helper=!f() { test "$1" = get && cat <&3; }; f';

interface RemoteCall {
  readonly arguments: readonly string[];
  /** Arguments after the address of the remote. */
  readonly operands?: readonly string[];
  readonly input?: string;
  readonly maxOutput?: number;
  readonly timeout: number;
  readonly signal: AbortSignal | undefined;
}

interface RemoteResult extends GitResult {
  /** What git had for HTTP. */
  readonly credentials?: GitCredentials | undefined;
}

/**
 * Fetches, lists and pushes with git itself: one process for each call. Nothing about the remote is stored in the
 * repository.
 */
export class GitTransport {
  readonly #gitDir: string;
  readonly #options: EngineOptions;
  readonly #listRefs: (prefixes: readonly string[]) => Promise<Ref[]>;

  constructor(gitDir: string, options: EngineOptions, listRefs: (prefixes: readonly string[]) => Promise<Ref[]>) {
    this.#gitDir = gitDir;
    this.#options = options;
    this.#listRefs = listRefs;
  }

  /** `isListed` if the number of the remote's refs is known to be below the limit, which git itself does not have. */
  async fetch(remote: GitRemote, options: FetchOptions, isListed: boolean): Promise<RefChange[]> {
    const side = checkRefspecs(options.refspecs);
    if (!isListed) await this.list(remote, [], options.signal);
    const before = await this.#listRefs(side.prefixes);
    try {
      await this.#fetch(remote, options, ['--atomic']);
    } catch (error) {
      // A ref replaces a folder whose refs are deleted: Git does both in one transaction only if it prunes first.
      const collides = error instanceof RefConflictError && error.details?.kind === 'collision';
      if (!collides || options.prune !== true) throw error;
      await this.#fetch(remote, options, []);
    }
    const after = await this.#listRefs(side.prefixes);
    return (await changesBetween(before, after)).filter(({ name }) => side.covers(name));
  }

  async list(remote: GitRemote, prefixes: readonly string[], signal: AbortSignal | undefined): Promise<Ref[]> {
    const refs: Ref[] = [];
    await inSlices(linesOf(await this.#readList(remote, kindsOf(prefixes), signal)), (line) => {
      const [oid = '', name = ''] = line.split('\t');
      const wanted = prefixes.length === 0 || prefixes.some((prefix) => name.startsWith(prefix));
      if (wanted && name.startsWith('refs/') && isOid(oid)) refs.push({ name, oid });
      if (refs.length > MAX_REMOTE_REFS) throw tooManyRefs(remote.url);
    });
    return await sortedByName(refs);
  }

  /** Pushes checked updates whose objects are on the disk; none may verify that a ref is absent. */
  async push(remote: GitRemote, updates: readonly RefUpdate[], signal: AbortSignal | undefined): Promise<void> {
    const { code, stdout, stderr, credentials } = await this.#pushCall(remote, updates, signal);
    if (code === 0) return;
    const { rejections, changed } = parsePushReport(stdout.toString('utf8'));
    if (rejections.length === 0) {
      const error = remoteError(remote.url, stderr, credentials);
      // Checked before anything is changed: what the server cannot do or does not permit, and why ssh cannot connect.
      const isBefore = ['Unsupported', 'Refused'].includes(error.code) || sshError(remote.url, stderr) !== undefined;
      throw isBefore ? error : unknownOutcome(error);
    }
    const inPart = partialPushError(remote.url, changed, rejections);
    if (inPart !== undefined) throw inPart;
    const conflict = isUnexplained(rejections)
      ? compareWithRemote(updates, await this.list(remote, [], signal))
      : undefined;
    throw conflict ?? rejectionError(rejections, updates, toOneLine(remoteOutput(stderr)));
  }

  async #readList(remote: GitRemote, kinds: readonly string[], signal: AbortSignal | undefined): Promise<Buffer> {
    try {
      const { code, stdout, stderr, credentials } = await this.#call(remote, {
        arguments: ['ls-remote', '--quiet', '--refs', ...kinds],
        timeout: this.#options.timeouts.listRemote,
        maxOutput: MAX_REF_LIST_BYTES,
        signal,
      });
      if (code !== 0) throw remoteError(remote.url, stderr, credentials);
      return stdout;
    } catch (error) {
      throw isSluiceError(error, 'LimitExceeded') ? tooManyRefs(remote.url) : error;
    }
  }

  async #fetch(remote: GitRemote, options: FetchOptions, more: readonly string[]): Promise<void> {
    requireFreeSpace(this.#gitDir);
    const { code, stderr, credentials } = await this.#call(remote, {
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
    if (code !== 0) throw fetchError(remote.url, stderr, credentials);
  }

  async #pushCall(
    remote: GitRemote,
    updates: readonly RefUpdate[],
    signal: AbortSignal | undefined,
  ): Promise<RemoteResult> {
    const options = (remote.pushOptions ?? []).map((option) => `--push-option=${option}`);
    const leases = updates.map((update) => `--force-with-lease=${update.ref}:${expectedValue(update) ?? ''}`);
    try {
      return await this.#call(remote, {
        arguments: ['push', '--porcelain', '--atomic', '--no-verify', '--no-progress', ...options, ...leases],
        operands: updates.map((update) => `${newValue(update) ?? ''}:${update.ref}`),
        timeout: this.#options.timeouts.push,
        signal,
      });
    } catch (error) {
      if (!isSluiceError(error, 'Timeout') && !isSluiceError(error, 'Unavailable')) throw error;
      throw unknownOutcome(error);
    }
  }

  async #call(remote: GitRemote, call: RemoteCall): Promise<RemoteResult> {
    const { hosts, authorities } = this.#options.network;
    const { url, protocol, endpoint } = checkRemoteUrl(remote.url, hosts);
    const run = (settings: readonly string[], secret?: string) =>
      runGit({
        gitDir: this.#gitDir,
        settings: [...SETTINGS, ...settings],
        arguments: [...call.arguments, '--end-of-options', url, ...(call.operands ?? [])],
        allowedProtocol: protocol,
        clock: this.#options.clock,
        timeout: call.timeout,
        signal: call.signal,
        input: call.input ?? '',
        ...(call.maxOutput === undefined ? {} : { maxOutput: call.maxOutput }),
        secret,
      });
    if (endpoint === undefined) return await run([]);
    if (protocol === 'ssh') {
      // Git passes this to a shell; the operands that git adds are separate arguments.
      const useSsh = (ssh: readonly string[]) =>
        run([`core.sshCommand=ssh ${ssh.map(quoted).join(' ')}`, 'ssh.variant=ssh']);
      return await withSshConfig(await readSshCredentials(remote), (ssh) =>
        connectPinned(
          hosts,
          endpoint,
          (pin) => useSsh([...ssh, ...pin]),
          (outcome) => 'result' in outcome && outcome.result.code !== 0 && reportsUnreachable(outcome.result.stderr),
        ),
      );
    }
    const pin = await httpPin(hosts, endpoint);
    const credentials = await readCredentials(remote);
    const { basic, certificateAuthorities } = credentials ?? {};
    // In the line format of Git's helpers.
    const secret = basic === undefined ? undefined : `username=${basic.username}\npassword=${basic.password}\n`;
    const settings = secret === undefined ? pin : [...pin, CREDENTIALS_FROM_FD_3];
    const trusted = trustedAuthorities(certificateAuthorities, authorities)?.join('\n');
    const result =
      trusted === undefined
        ? await run(settings, secret)
        : await withPrivateFiles({ authorities: trusted }, (folder) =>
            run([...settings, `http.sslCAInfo=${folder}/authorities`], secret),
          );
    return { ...result, credentials };
  }
}

/** For a host that only a proxy can resolve: git must not resolve it either. This address is not routed (RFC 5737). */
const NOWHERE = '192.0.2.1';

/** Settings that make git connect to the addresses that were checked. Throws Refused for a local host. */
async function httpPin(hosts: HostRules, endpoint: Endpoint): Promise<string[]> {
  const { host, port } = endpoint;
  // An IP address has been checked with the URL.
  if (isIP(host.replace(/^\[|\]$/g, '')) !== 0) return [];
  let addresses: readonly string[] | undefined;
  try {
    addresses = (await hosts.addresses(endpoint))?.map(({ address }) =>
      isIP(address) === 6 ? `[${address}]` : address,
    );
  } catch (error) {
    if (!usesProxy() || !isSluiceError(error, 'Unavailable')) throw error;
    addresses = [NOWHERE];
  }
  return addresses === undefined ? [] : [`http.curloptResolve=${host}:${port}:${addresses.join(',')}`];
}

/** For a shell: in quotes if needed; the word itself has none. */
function quoted(word: string): string {
  return /^[\w./:=@,+-]+$/.test(word) ? word : `'${word}'`;
}

/** Returns what the server can limit the listing to if all prefixes are of one kind. */
function kindsOf(prefixes: readonly string[]): string[] {
  const kinds = new Set<string>();
  for (const prefix of prefixes) {
    if (prefix.startsWith('refs/heads/')) kinds.add('--heads');
    else if (prefix.startsWith('refs/tags/')) kinds.add('--tags');
    else return [];
  }
  return [...kinds];
}

function fetchError(url: string, stderr: string, credentials: GitCredentials | undefined): SluiceError {
  if (isDiskFullMessage(stderr)) return diskFull('the mirror', cleanText(stderr));
  const lock = /cannot (?:lock|update) ref '.*/s.exec(stderr);
  if (lock !== null) return updateRefError(lock[0], []);
  if (/! \[rejected\].*\(non-fast-forward\)/.test(stderr))
    return new RefConflictError(
      { ref: undefined, kind: 'moved' },
      `remote ${url} has refs that do not descend from the local ones: use a refspec with "+" to accept them`,
    );
  return remoteError(url, stderr, credentials);
}
