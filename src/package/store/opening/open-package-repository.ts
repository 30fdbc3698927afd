import { createHash, randomUUID } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { isSluiceError, SluiceError } from '../../../foundation/sluice-error.ts';
import { trimEndOf } from '../../../foundation/text/trim-characters.ts';
import type { Clock } from '../../../foundation/time/clock.ts';
import { DamageError } from '../../../git/errors.ts';
import type { GitCredentials, GitRemote, GitRepository, MirrorRepair } from '../../../git/git-repository.ts';
import { readRemoteUrl } from '../../../git/network/remote-url.ts';
import { localPath, openLocation } from '../../../git/open/open-location.ts';
import type { RepositoryOptions } from '../../../git/open/open-repository.ts';
import { canonicalAddressNow } from '../../../git/open/repository-address.ts';
import { type Repository, TRUSTED_KEYS_ANNOTATION } from '../../../resource/kinds/porch/repository.ts';
import { DEFAULT_NAMESPACE, type DeepReadonly } from '../../../resource/object/object.ts';
import {
  mainRef,
  probeRef,
  RECORD_BRANCHES,
  RECORD_REFS,
  recordPrefixIn,
  watchedPrefixes,
} from '../../model/identity/layout.ts';
import { MIRROR_REFSPECS } from '../../model/identity/mirror-refspecs.ts';
import { formatCommitMessage } from '../../model/record/commit-message.ts';
import { ShownRefs } from '../../transaction/shown-refs.ts';
import { type TrustedKeys, trustedKeysOf, trusts } from '../../trust/keys/trusted-keys.ts';
import { remoteSettings } from '../../upstream/remote-settings.ts';
import { PackageRepository, type PackageRepositoryOptions } from '../package-repository.ts';
import { openRepositoryTrust, type ServerTrust } from './open-repository-trust.ts';

/** Returns the folder of hosted repositories in a data folder, with addresses of the form `sluice:///<name>.git`. */
export function hostedFolder(dataFolder: string): string {
  return join(dataFolder, 'repositories');
}

export interface OpenOptions
  extends Pick<
    PackageRepositoryOptions,
    'renderer' | 'policyFor' | 'refreshPolicies' | 'dependentsOf' | 'onChange' | 'follows' | 'background'
  > {
  /** Reads the mirror of a remote repository without connecting, for read-only callers. */
  readonly offline?: boolean;
  /** True if the registration was read before, by whichever process. */
  readonly wasRead?: boolean;
  /** The signing key and the trust of this server. */
  readonly trust: ServerTrust;
  /** True for the address of another registered repository; default: for none. */
  readonly isRegistered?: (address: string) => Promise<boolean>;
  /** Gives a copy of another repository a new id. */
  readonly newId?: boolean;
  /** Folder for mirrors and index caches. */
  readonly dataFolder: string;
  readonly clock: Clock;
  readonly credentials?: () => Promise<GitCredentials>;
  readonly git?: RepositoryOptions;
  readonly signal?: AbortSignal;
  /** Called when the mirror was damaged and has been repaired. */
  readonly onRepair?: (repair: MirrorRepair) => void;
}

/** Opens the repository of a Repository object, up to a readable index. Throws an error with the next step if it cannot be used. */
export async function openPackageRepository(
  object: DeepReadonly<Repository>,
  options: OpenOptions,
): Promise<PackageRepository> {
  const { git: spec, type } = object.spec;
  const { name, namespace = DEFAULT_NAMESPACE } = object.metadata;
  if (type !== 'git' || spec === undefined) {
    throw new SluiceError(
      'Unsupported',
      `repository ${name}: spec.type must be git, with spec.git; OCI registries cannot store drafts`,
    );
  }
  const directory = spec.directory === '/' ? '' : spec.directory;
  const location = `${name}-${createHash('sha256').update(`${namespace}/${name} ${spec.repo}`).digest('hex').slice(0, 8)}`;
  const { transport, pushOptions } = remoteSettings(object);
  const { git, remote } = await openLocation({
    url: spec.repo,
    mirrorPath: join(options.dataFolder, 'git', `${mirrorName(spec.repo)}.git`),
    hostedFolder: hostedFolder(options.dataFolder),
    repairsMirror: true,
    ...(options.credentials === undefined ? {} : { credentials: options.credentials }),
    repository: transport === 'git' ? { ...options.git, transport } : (options.git ?? {}),
    pushOptions,
  });
  const signal = options.signal === undefined ? {} : { signal: options.signal };
  const everything = { refspecs: MIRROR_REFSPECS, prune: true, ...signal };
  const read = async () => {
    const { ledger } = options.trust;
    const known = ledger.repositoryAt(canonicalAddressNow(spec.repo))?.id;
    // What is shown from here on may be missing in what the fetch brings.
    const shownBefore = known === undefined ? {} : ledger.shownOf?.(known);
    const fetches = remote !== undefined && options.offline !== true;
    if (fetches) await git.fetch(remote, everything);
    const prober = options.offline === true ? undefined : remote;
    const recordPrefix = remote === undefined ? RECORD_REFS : await recordPrefixFor(git, prober, options.signal);
    const layout = { branch: spec.branch, directory, recordPrefix };
    const identity = { name: spec.author ?? 'sluice', email: spec.email ?? 'sluice@localhost' };
    const isMissing = (await git.resolveRef(mainRef(layout))) === undefined;
    // Without its branch a repository still has its drafts and tags.
    const wasSeen = options.wasRead === true && (options.offline !== true || (await hasRefs(git)));
    if (isMissing && !(wasSeen && spec.createBranch !== true)) {
      if (spec.createBranch !== true || options.offline === true) {
        throw new SluiceError(
          'InvalidInput',
          `repository ${name}: branch ${spec.branch} does not exist in ${spec.repo}; push a first commit, or set spec.git.createBranch: true`,
        );
      }
      await createBranch(git, remote, mainRef(layout), identity, options);
    }
    const { annotations } = object.metadata;
    const { signer } = options.trust;
    const trusted = await openRepositoryTrust({
      ...{ git, remote, layout, identity, server: options.trust, address: spec.repo, clock: options.clock },
      ...{ isRegistered: options.isRegistered, newId: options.newId, signal: options.signal },
      trustedKeys: () => trustedKeysOf(annotations, ledger.keys()).keys,
      problems: () => keyProblems(trustedKeysOf(annotations, ledger.keys()), signer),
      refetch: async () => {
        if (remote !== undefined) await git.fetch(remote, everything);
      },
    });
    const { trust } = trusted;
    const file = join(git.path, 'sluice-shown-refs.json');
    const shown = remote && new ShownRefs({ file, prefixes: watchedPrefixes(layout), trust });
    if (options.offline === true && options.wasRead === true)
      shown?.expectCurrent(await git.listRefs(watchedPrefixes(layout)), spec.repo);
    return await PackageRepository.open({
      ...trusted,
      ...{ shown, fetched: fetches ? (trust.repository === known ? shownBefore : {}) : undefined },
      name,
      namespace,
      deployment: object.spec.deployment ?? false,
      ...(options.follows === undefined ? {} : { follows: options.follows }),
      url: spec.repo,
      layout,
      git,
      ...(remote === undefined ? {} : { remote }),
      cacheFile: join(options.dataFolder, 'cache', `${location}.ndjson`),
      ...{ clock: options.clock, background: options.background },
      renderer: options.renderer,
      identity,
      policyFor: options.policyFor,
      ...(options.refreshPolicies === undefined ? {} : { refreshPolicies: options.refreshPolicies }),
      dependentsOf: options.dependentsOf,
      onChange: options.onChange,
    });
  };
  try {
    try {
      return await read();
    } catch (error) {
      if (remote === undefined || !(error instanceof DamageError)) throw error;
      const repair = await git.repair(remote, everything);
      options.onRepair?.(repair);
      return await read();
    }
  } catch (error) {
    await git.close();
    throw error;
  }
}

/** True for a mirror that was fetched. */
async function hasRefs(git: GitRepository): Promise<boolean> {
  return (await git.listRefs(['refs/'])).length > 0;
}

/** The own key is the one that signs now: it may have been rotated since the repository was opened. */
function keyProblems({ keys, problems }: TrustedKeys, signer: ServerTrust['signer']): string[] {
  let own: string;
  try {
    own = signer().fingerprint;
  } catch (error) {
    if (!isSluiceError(error)) throw error;
    return [`statements cannot be signed: ${error.message}`, ...problems];
  }
  if (trusts(keys, own)) return [...problems];
  const text = `statements of this server do not count in this repository: its key ${own} is not among those of the annotation ${TRUSTED_KEYS_ANNOTATION}, or is revoked; see "sluice key show"`;
  return [text, ...problems];
}

/** One mirror for an address, however many namespaces register it: each fetches with its own credentials before it reads. */
function mirrorName(address: string): string {
  const url = localPath(address) === undefined ? readRemoteUrl(address).url : address;
  const normal = trimEndOf(url, '/').replace(/\.git$/, '');
  const name = normal
    .slice(normal.lastIndexOf('/') + 1)
    .replaceAll(/[^A-Za-z0-9._-]/g, '-')
    .slice(0, 60);
  return `${name}-${createHash('sha256').update(normal).digest('hex').slice(0, 16)}`;
}

async function createBranch(
  git: GitRepository,
  remote: GitRemote | undefined,
  ref: string,
  identity: { name: string; email: string },
  { clock, signal }: Pick<OpenOptions, 'clock' | 'signal'>,
): Promise<void> {
  const signature = { ...identity, time: clock.now() };
  const tree = await git.editTree(undefined, new Map([['README.md', { data: Buffer.from('Created by sluice\n') }]]));
  const context = { actor: { name: identity.name }, face: 'api' } as const;
  const message = formatCommitMessage('Initial commit: Creating main branch', { context, action: 'create-branch' });
  const oid = await git.writeCommit({ tree, parents: [], author: signature, committer: signature, message });
  const update = { type: 'create', ref, new: oid } as const;
  if (remote !== undefined) await git.push(remote, [update], signal);
  await git.transaction([update]);
}

/**
 * Determines where a host accepts records: some accept only branches and tags. A ref is created and removed as a test, once for each
 * mirror, unless that was inconclusive; existing records or an existing id make the test unnecessary.
 */
async function recordPrefixFor(
  git: GitRepository,
  remote: GitRemote | undefined,
  signal?: AbortSignal,
): Promise<string> {
  const written = recordPrefixIn((await git.listRefs(['refs/sluice/', 'refs/heads/sluice-'])).map(({ name }) => name));
  if (written !== undefined) return written;
  const noteFile = join(git.path, 'sluice-record-refs');
  const noted = await readNote(noteFile);
  if (noted === RECORD_REFS || noted === RECORD_BRANCHES) return noted;
  const [some] = await git.listRefs(['refs/heads/']);
  if (some === undefined || remote === undefined) return RECORD_REFS;
  const prefix = await probe(git, remote, some.oid, signal);
  if (prefix === undefined) return RECORD_REFS;
  await writeFile(noteFile, prefix);
  return prefix;
}

/**
 * Returns where the remote accepts records. Undefined if that cannot be determined now: a refusal alone may come from a hook that
 * temporarily refuses everything, and is about the name only if a branch is accepted.
 */
async function probe(
  git: GitRepository,
  remote: GitRemote,
  oid: string,
  signal?: AbortSignal,
): Promise<string | undefined> {
  for (const prefix of [RECORD_REFS, RECORD_BRANCHES]) {
    const ref = probeRef(prefix, randomUUID());
    try {
      await git.push(remote, [{ type: 'create', ref, new: oid }], signal);
    } catch (error) {
      if (isSluiceError(error, 'PushRefused') || isSluiceError(error, 'Conflict')) continue;
      if (isSluiceError(error, 'Timeout') || signal?.aborted === true) throw error;
      // The next write gets the error.
      return undefined;
    }
    await git.push(remote, [{ type: 'delete', ref, old: oid }], signal);
    return prefix;
  }
  return undefined;
}

async function readNote(file: string): Promise<string | undefined> {
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}
