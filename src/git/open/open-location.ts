import { access, mkdir, realpath, rename, rm } from 'node:fs/promises';
import { basename, dirname, join, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { isSluiceError, SluiceError } from '../../foundation/sluice-error.ts';
import type { GitCredentials, GitRemote, GitRepository } from '../git-repository.ts';
import { PUBLIC_NETWORK } from '../network/git-network.ts';
import { isLoopback, readRemoteUrl } from '../network/remote-url.ts';
import { initRepository, openRepository, type RepositoryOptions } from './open-repository.ts';

export interface LocationOptions {
  /** `https://…`, `ssh://…`, `<user>@<host>:<path>`, `http://…` to a host that is permitted, `file:///…`, an absolute path, or `sluice:///<name>.git`. */
  readonly url: string;
  /** Folder for repositories of the last form, which are created when they are first opened. */
  readonly hostedFolder?: string | undefined;
  /** Path of the mirror of a remote repository. */
  readonly mirrorPath: string;
  readonly credentials?: () => Promise<GitCredentials>;
  /** See GitRemote. */
  readonly pushOptions?: readonly string[];
  readonly repository?: RepositoryOptions;
  /**
   * True if the caller repairs a damaged mirror (`GitRepository.repair`). It need not survive a crash of the machine then, so that
   * writes need no sync.
   */
  readonly repairsMirror?: boolean;
}

export interface OpenLocation {
  readonly git: GitRepository;
  /** Set if `git` is a mirror of a repository elsewhere; undefined if it is the repository itself. */
  readonly remote: GitRemote | undefined;
}

/** Opens the repository that an address names: one on this machine directly, another one through a bare mirror. */
export async function openLocation(options: LocationOptions): Promise<OpenLocation> {
  const path = localPath(options.url, options.hostedFolder);
  if (path !== undefined) {
    if (options.repository?.network?.isRemoteOnly === true)
      throw new SluiceError(
        'Refused',
        `cannot open the repository ${options.url}: it would be on the machine of Sluice, which keeps only caches in a cluster; use https:// or ssh://`,
      );
    if (isHosted(options.url)) return { git: await openHosted(path, options), remote: undefined };
    await refuseHosted(path, options);
    await checkBare(path);
    return { git: await openRepository(path, options.repository), remote: undefined };
  }
  await mkdir(dirname(options.mirrorPath), { recursive: true });
  const git = await openMirror(options.mirrorPath, {
    // Any user may have chosen the address: Sluice connects to no local address unless the operator permits it.
    network: PUBLIC_NETWORK,
    ...options.repository,
    durable: options.repairsMirror !== true,
  });
  const remote = {
    url: options.url,
    ...(options.credentials === undefined ? {} : { credentials: options.credentials }),
    ...(options.pushOptions === undefined ? {} : { pushOptions: options.pushOptions }),
  };
  return { git, remote };
}

/** The path of a repository on this machine; undefined for one that is reached over a network. */
export function localPath(url: string, hostedFolder = ''): string | undefined {
  if (url.startsWith('/')) return url;
  if (isHosted(url)) return join(hostedFolder, basename(url));
  // The scheme of a URL may be written in any case.
  return /^file:/i.test(url) ? fileURLToPath(url) : undefined;
}

/** True for an address on this machine by its text: a path, a repository that Sluice keeps, or a port of loopback. */
export function isOnThisMachine(url: string): boolean {
  if (localPath(url) !== undefined) return true;
  const { endpoint } = readRemoteUrl(url);
  return endpoint !== undefined && isLoopback(endpoint.host.replace(/\.$/, ''));
}

/** True for the address of a repository that Sluice keeps itself. */
export function isHosted(url: string): boolean {
  return url.startsWith('sluice:');
}

/** A mirror is a copy: one that cannot be opened is moved aside, and fetched again. */
async function openMirror(path: string, options: RepositoryOptions | undefined): Promise<GitRepository> {
  try {
    return await initRepository(path, options);
  } catch (error) {
    if (!(['NotFound', 'InvalidInput', 'Unsupported', 'Corrupt'] as const).some((code) => isSluiceError(error, code)))
      throw error;
  }
  await rm(`${path}.damaged`, { recursive: true, force: true });
  await rename(path, `${path}.damaged`);
  return await initRepository(path, options);
}

async function openHosted(path: string, { url, hostedFolder, repository }: LocationOptions): Promise<GitRepository> {
  if (hostedFolder === undefined)
    throw new SluiceError('InvalidInput', `${url} can be the address of a registered repository or a target only`);
  await mkdir(hostedFolder, { recursive: true, mode: 0o700 });
  return initRepository(path, repository);
}

/** One repository has one address: under a second one the policies for the first would be bypassed. */
async function refuseHosted(path: string, { url, hostedFolder }: LocationOptions): Promise<void> {
  if (hostedFolder === undefined || !(await exists(hostedFolder)) || !(await exists(path))) return;
  const [folder, real] = await Promise.all([realpath(hostedFolder), realpath(path)]);
  if (real.startsWith(`${folder}${sep}`))
    throw new SluiceError('InvalidInput', `${url} is kept by Sluice itself; use sluice:///${basename(real)}`);
}

async function checkBare(path: string): Promise<void> {
  if (await exists(join(path, 'HEAD'))) return;
  if (await exists(join(path, '.git'))) {
    throw new SluiceError(
      'InvalidInput',
      `${path} has a work tree, and changing its branches would make it inconsistent; use a bare repository (git clone --bare ${path} ${path}.git)`,
    );
  }
  throw new SluiceError('NotFound', `there is no Git repository at ${path}; create one with: git init --bare ${path}`);
}

async function exists(path: string): Promise<boolean> {
  try {
    await access(path);
    return true;
  } catch {
    // It cannot be used for any of these reasons; the caller reports that.
    return false;
  }
}
