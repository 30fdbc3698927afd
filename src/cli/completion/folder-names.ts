import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { basename, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { DataFolder } from '../../app/data/data-folder.ts';

/** More names do not help the user. */
const MAX_NAMES = 1000;
/** A git command that takes longer is too slow for a completion. */
const GIT_TIMEOUT_MS = 1000;

/** Kinds whose names are those of their objects, by their topics. */
const TOPICS = {
  targets: 'sluice.dev/v1alpha1/DeliveryTarget',
  plans: 'sluice.dev/v1alpha1/WavePlan',
  freezes: 'sluice.dev/v1alpha1/Freeze',
  policies: 'sluice.dev/v1alpha1/PackagePolicy',
  'analysis runs': 'sluice.dev/v1alpha1/AnalysisRun',
  variants: 'config.porch.kpt.dev/v1alpha1/PackageVariant',
  'variant sets': 'config.porch.kpt.dev/v1alpha2/PackageVariantSet',
} as const;

export type ObjectNames = keyof typeof TOPICS;

export interface FolderRequest {
  readonly kind: 'revisions' | 'repositories' | ObjectNames | 'condition types' | 'waves';
  /** The beginning of the names. */
  readonly current: string;
  readonly namespace: string;
  /** The revision whose condition types, or the plan whose waves are looked up. */
  readonly subject: string;
}

interface Repository {
  readonly metadata: { readonly name: string; readonly namespace?: string };
  readonly spec?: { readonly git?: { readonly repo?: string; readonly directory?: string } };
}

interface Plan extends Pick<Repository, 'metadata'> {
  readonly spec?: { readonly waves?: readonly { readonly name: string }[] };
}

interface Policy {
  readonly metadata: { readonly namespace?: string };
  readonly spec?: {
    readonly selector?: { readonly repositories?: readonly string[] };
    readonly requiredGates?: readonly { readonly conditionType: string }[];
  };
}

/** Names in a data folder. Neither a server is needed nor a repository opened. */
export async function folderNames(
  { kind, current, namespace, subject }: FolderRequest,
  folder: DataFolder,
): Promise<string[]> {
  if (!existsSync(folder.database)) return [];
  const database = new DatabaseSync(folder.database, { readOnly: true, timeout: 200 });
  try {
    const objects = <T extends Pick<Policy, 'metadata'>>(topic: string) =>
      database
        .prepare('SELECT object FROM objects WHERE topic = ?')
        .all(topic)
        .map(({ object }) => JSON.parse(String(object)) as T)
        .filter(({ metadata }) => metadata.namespace === namespace);
    if (kind in TOPICS) return objects<Repository>(TOPICS[kind as ObjectNames]).map(({ metadata }) => metadata.name);
    if (kind === 'waves') {
      const plan = objects<Plan>(TOPICS.plans).find(({ metadata }) => metadata.name === subject);
      return (plan?.spec?.waves ?? []).map(({ name }) => name);
    }
    const repositories = objects<Repository>('config.porch.kpt.dev/v1alpha1/Repository');
    const names = repositories.map(({ metadata }) => metadata.name);
    if (kind === 'repositories') return names;
    const [repository = '', ...more] = (kind === 'revisions' ? current : subject).split('.');
    const chosen = repositories.filter(({ metadata: { name } }) =>
      more.length === 0 ? name.startsWith(repository) : name === repository,
    );
    if (kind === 'condition types') {
      const required = objects<Policy>('sluice.dev/v1alpha1/PackagePolicy')
        .filter(({ spec }) => spec?.selector?.repositories?.includes(repository) ?? true)
        .flatMap(({ spec }) => spec?.requiredGates ?? []);
      const own = await Promise.all(chosen.map((one) => typesInGit(one, subject, folder).catch(() => [])));
      return [...required.map((gate) => gate.conditionType), ...own.flat()];
    }
    // What the last "sluice up" showed; it keeps that up to date.
    const prefix = `${namespace}/${current}`;
    const shown = database
      .prepare('SELECT key FROM notes WHERE topic = ? AND key >= ? AND key < ? LIMIT ?')
      .all('versions/packagerevisions', prefix, `${prefix}\u{10ffff}`, MAX_NAMES)
      .map(({ key }) => String(key).slice(namespace.length + 1));
    const found = await Promise.all(chosen.map((one) => revisionsInGit(one, folder).catch(() => [])));
    return [...shown, ...found.flat().map(({ name }) => name)];
  } finally {
    database.close();
  }
}

/** Types of the gates and conditions in the Kptfile of a revision. */
async function typesInGit(repository: Repository, revision: string, folder: DataFolder): Promise<string[]> {
  const found = (await revisionsInGit(repository, folder)).find(({ name }) => name === revision);
  if (found === undefined) return [];
  const [{ conditionsOf, gatesOf, readKptfile }, text] = await Promise.all([
    import('../../../kptfile-schema/index.ts'),
    git(found.git, 'show', '--end-of-options', `${found.ref}:${found.path}/Kptfile`),
  ]);
  const read = readKptfile(Buffer.from(text));
  return read.ok ? [...gatesOf(read.kptfile), ...conditionsOf(read.kptfile).keys()] : [];
}

interface RevisionInGit {
  readonly name: string;
  /** Folder of the bare repository. */
  readonly git: string;
  readonly ref: string;
  /** Folder of the package in the repository. */
  readonly path: string;
}

/** Drafts, proposals and publications of a repository on this machine, by its refs. */
async function revisionsInGit({ metadata, spec }: Repository, { path }: DataFolder): Promise<RevisionInGit[]> {
  const { repo = '', directory = '/' } = spec?.git ?? {};
  const folder = repo.startsWith('sluice:')
    ? join(path, 'repositories', basename(repo))
    : repo.startsWith('file:')
      ? fileURLToPath(repo)
      : repo;
  if (!folder.startsWith('/')) return [];
  const prefix = directory.replaceAll(/^\/+|\/+$/g, '');
  const format = '--format=%(refname)%00%(contents)%00%00';
  const refs = ['refs/heads/drafts', 'refs/heads/proposed', 'refs/tags'];
  const listed = await git(folder, 'for-each-ref', `--count=${MAX_NAMES}`, format, ...refs);
  return listed.split('\0\0\n').flatMap((entry) => {
    const [ref = '', message = ''] = entry.split('\0');
    const named = ref.replace(/^refs\/(?:heads\/(?:drafts|proposed)|tags)\//, '');
    if (named === ref || (prefix !== '' && !named.startsWith(`${prefix}/`))) return [];
    const segments = named.slice(prefix === '' ? 0 : prefix.length + 1).split('/');
    // A tag is named by its number; the commit says from which workspace it comes.
    const workspace = /^kpt:.*"workspaceName":"([^"]+)"/m.exec(message)?.[1];
    if (ref.startsWith('refs/tags/') && workspace !== undefined) segments.splice(-1, 1, workspace);
    if (segments.length < 2) return [];
    const name = [metadata.name, ...segments].join('.');
    return [{ name, git: folder, ref, path: named.slice(0, named.lastIndexOf('/')) }];
  });
}

async function git(folder: string, ...words: readonly string[]): Promise<string> {
  const { stdout } = await promisify(execFile)('git', ['--git-dir', folder, ...words], {
    maxBuffer: 64 * 1024 * 1024,
    timeout: GIT_TIMEOUT_MS,
    env: { ...process.env, GIT_OPTIONAL_LOCKS: '0' },
  });
  return stdout;
}
