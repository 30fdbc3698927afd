import { createHash } from 'node:crypto';
import { readdir, rm, stat, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import { Mutex } from '../../foundation/concurrency/mutex.ts';
import { SluiceError } from '../../foundation/sluice-error.ts';
import type { Clock } from '../../foundation/time/clock.ts';
import type { GitCredentials, GitRemote, GitRepository, Oid } from '../../git/git-repository.ts';
import { PUBLIC_NETWORK } from '../../git/network/git-network.ts';
import { readRemoteUrl } from '../../git/network/remote-url.ts';
import { isOnThisMachine, localPath, openLocation } from '../../git/open/open-location.ts';
import type { RepositoryOptions } from '../../git/open/open-repository.ts';
import { isRefName } from '../../git/ref-name.ts';
import { gitAddressProblem, normalizeDirectory } from '../../resource/kinds/common/git-location.ts';
import type { RequestContext } from '../../resource/object/request-context.ts';
import type { UpstreamAddress } from './revision-source.ts';
import { readPackageFiles, type UpstreamPackage } from './upstream-reader.ts';

export interface UpstreamMirrorsOptions {
  /** Folder of the mirrors; it may be deleted while it is not in use. */
  readonly folder: string;
  readonly clock: Clock;
  /**
   * Credentials from a Secret, for each request. They are sent to the address that the same request names, so it must be refused
   * here if the asker may not read the Secret.
   */
  readonly credentials?: (secret: SecretName, context: RequestContext) => Promise<GitCredentials>;
  /**
   * True for a caller who may name repositories on this machine, be it a path or a port: one who can read its disk anyway. Ports that
   * the operator permits by name are open to all.
   */
  readonly allowLocal: (context: RequestContext) => boolean;
  /** Timeout of one fetch in milliseconds; default two minutes. */
  readonly timeout?: number;
  readonly git?: RepositoryOptions;
}

export interface SecretName {
  readonly namespace: string;
  readonly name: string;
}

const FETCH_TIMEOUT_MS = 120_000;

/** Maximum number of mirrors; the least recently used one is deleted. */
const MAX_MIRRORS = 32;

/**
 * Packages of Git repositories that are not registered. Of a remote one, the requested ref is fetched into a mirror, which
 * makes the next fetch small; Sluice fetches from the remote each time, so no caller gets from a mirror what the remote would not give.
 */
export class UpstreamMirrors {
  readonly #options: UpstreamMirrorsOptions;
  readonly #reads = new Map<string, { readonly mutex: Mutex; users: number }>();

  constructor(options: UpstreamMirrorsOptions) {
    this.#options = options;
  }

  /** Reads the package that an address names. Throws InvalidInput, Refused, NotFound, Unavailable, Timeout, LimitExceeded. */
  async read(address: UpstreamAddress, namespace: string, context: RequestContext): Promise<UpstreamPackage> {
    const directory = this.#check(address, context);
    const { repo, ref, secretRef } = address;
    const key = JSON.stringify([namespace, secretRef?.name ?? '', repo]);
    const mirror = `${createHash('sha256').update(key).digest('hex').slice(0, 16)}.git`;
    return this.#alone(mirror, async () => {
      const { git, remote } = await openLocation({
        url: repo,
        mirrorPath: join(this.#options.folder, mirror),
        ...(this.#options.git === undefined ? {} : { repository: this.#options.git }),
        ...this.#credentials(secretRef, namespace, context),
      });
      try {
        const commit = await this.#commit(git, remote, address, directory, context);
        const location = { repo, directory: directory === '' ? '/' : directory, ref, commit };
        return { location, files: await readPackageFiles(git, `${commit}:${directory}`) };
      } finally {
        await git.close();
        if (remote !== undefined) await this.#makeRoom(mirror);
      }
    });
  }

  async #alone<Result>(mirror: string, section: () => Promise<Result>): Promise<Result> {
    const reads = this.#reads.get(mirror) ?? { mutex: new Mutex(), users: 0 };
    this.#reads.set(mirror, reads);
    reads.users += 1;
    try {
      return await reads.mutex.run(section);
    } finally {
      reads.users -= 1;
      if (reads.users === 0) this.#reads.delete(mirror);
    }
  }

  /** The directory in one form, empty for the root. */
  #check({ repo, ref, directory }: UpstreamAddress, context: RequestContext): string {
    const problem = gitAddressProblem(repo);
    if (problem !== undefined)
      throw new SluiceError('InvalidInput', `the address of the upstream repository ${problem}`);
    if (isOnThisMachine(repo) && !this.#isPermitted(repo) && !this.#options.allowLocal(context)) {
      throw new SluiceError(
        'Refused',
        'packages are cloned from repositories on this machine only if they are registered, or on a host that --allow-git-host names; register it and name a package revision',
      );
    }
    if (ref === '') throw new SluiceError('InvalidInput', 'the upstream needs a ref: a branch, a tag or a commit');
    const normal = normalizeDirectory(directory);
    if (normal === undefined) {
      throw new SluiceError(
        'InvalidInput',
        `the directory ${JSON.stringify(directory.slice(0, 200))} of the upstream must stay inside the repository and outside of .git`,
      );
    }
    return normal === '/' ? '' : normal;
  }

  /** True for a host that the operator permits by name; no path is one. */
  #isPermitted(repo: string): boolean {
    if (localPath(repo) !== undefined) return false;
    const { endpoint } = readRemoteUrl(repo);
    const { hosts } = this.#options.git?.network ?? PUBLIC_NETWORK;
    return endpoint !== undefined && hosts.isAllowed(endpoint.host, endpoint.port);
  }

  #credentials(
    secretRef: UpstreamAddress['secretRef'],
    namespace: string,
    context: RequestContext,
  ): { credentials?: () => Promise<GitCredentials> } {
    if (secretRef === undefined) return {};
    const { credentials } = this.#options;
    if (credentials === undefined) {
      throw new SluiceError(
        'Unsupported',
        'Secrets for upstream repositories cannot be used here; register the repository',
      );
    }
    return { credentials: () => credentials({ namespace, name: secretRef.name }, context) };
  }

  /** The commit that an address means, with its objects. */
  async #commit(
    git: GitRepository,
    remote: GitRemote | undefined,
    { repo, ref }: UpstreamAddress,
    directory: string,
    context: RequestContext,
  ): Promise<Oid> {
    const { timeout = FETCH_TIMEOUT_MS } = this.#options;
    const limit = AbortSignal.timeout(timeout);
    const signal = context.signal === undefined ? limit : AbortSignal.any([limit, context.signal]);
    try {
      const oid = /^[0-9a-f]{40}$/.test(ref) ? ref : await named(git, remote, namesOf(ref, directory), signal);
      if (oid === ref && remote !== undefined) await git.fetch(remote, { refspecs: ALL_REFS, prune: true, signal });
      const commit = oid === undefined ? undefined : await peeled(git, oid);
      if (commit !== undefined) return commit;
    } catch (error) {
      if (!limit.aborted) throw error;
      const message = `${repo} was not fetched within ${timeout / 1000} s; register the repository and name a package revision`;
      throw new SluiceError('Timeout', message, { cause: error });
    }
    throw new SluiceError('NotFound', `${repo} has no branch, tag or commit ${JSON.stringify(ref.slice(0, 200))}`);
  }

  async #makeRoom(used: string): Promise<void> {
    const { folder } = this.#options;
    const now = new Date(this.#options.clock.now());
    await utimes(join(folder, used), now, now);
    const mirrors = (await readdir(folder)).filter((name) => name.endsWith('.git'));
    if (mirrors.length <= MAX_MIRRORS) return;
    const ages = await Promise.all(
      mirrors.map(async (name) => ({ name, time: (await stat(join(folder, name))).mtimeMs })),
    );
    const [oldest] = ages.filter(({ name }) => !this.#reads.has(name)).sort((a, b) => a.time - b.time);
    if (oldest !== undefined) await rm(join(folder, oldest.name), { recursive: true, force: true });
  }
}

const ALL_REFS = ['+refs/heads/*:refs/heads/*', '+refs/tags/*:refs/tags/*'];

/**
 * Returns the refs that a short name can mean, in kpt's order: a tag of the package's folder, another tag, a branch.
 */
function namesOf(ref: string, directory: string): string[] {
  const names = [`refs/tags/${ref}`, `refs/heads/${ref}`];
  return (directory === '' ? names : [`refs/tags/${directory}/${ref}`, ...names]).filter(isRefName);
}

/** Returns the target of the first of these refs that exists; fetched, if the repository is a mirror. */
async function named(
  git: GitRepository,
  remote: GitRemote | undefined,
  names: readonly string[],
  signal: AbortSignal,
): Promise<Oid | undefined> {
  if (names.length === 0) return undefined;
  const refs = remote === undefined ? await git.listRefs(names) : await git.listRemoteRefs(remote, names, signal);
  const found = names.map((name) => refs.find((ref) => ref.name === name)).find((ref) => ref !== undefined);
  if (found === undefined || remote === undefined) return found?.oid;
  // A separate name, which never collides with refs of the remote.
  const target = `refs/sluice/upstream/${createHash('sha256').update(found.name).digest('hex')}`;
  await git.fetch(remote, { refspecs: [`+${found.name}:${target}`], signal });
  return found.oid;
}

/** The commit behind an object: itself, or what an annotated tag points to. */
async function peeled(git: GitRepository, oid: Oid, depth = 0): Promise<Oid | undefined> {
  const [stat] = await git.statObjects([oid]);
  if (stat?.type === 'commit') return oid;
  if (stat?.type !== 'tag' || depth > 5) return undefined;
  const [tag] = await git.readObjects([oid]);
  const next = /^object ([0-9a-f]{40})\n/.exec(tag?.data.toString('latin1') ?? '')?.[1];
  return next === undefined ? undefined : peeled(git, next, depth + 1);
}
