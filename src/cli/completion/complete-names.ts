import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { basename, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { DataFolder } from '../../app/data/data-folder.ts';
import { localFolderOf, placeOf } from '../access/place.ts';

/** More are no help to who completes a name. */
const MAX_NAMES = 1000;
const DEFAULT_NAMESPACE = 'default';
/** Names from repositories go into a shell. */
const SAFE_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]*$/;
const VALUES = ['--data', '--kubeconfig', '--context', '--namespace', '-n'] as const;

type Option = (typeof VALUES)[number];

interface Repository {
  readonly metadata: { readonly name: string; readonly namespace?: string };
  readonly spec?: { readonly git?: { readonly repo?: string; readonly directory?: string } };
}

/**
 * Names of a kind that begin like `current`, for the completion of a command line. They are read without a server and without opening
 * repositories; a remote server alone is asked. Throws what it likes: the caller shows nothing of it.
 */
export async function completeNames(
  kind: string,
  current: string,
  line: readonly string[],
  environment: NodeJS.ProcessEnv,
): Promise<string[]> {
  const { '--data': data, '--kubeconfig': kubeconfig, '--context': context, ...rest } = optionsOf(line);
  const namespace = rest['--namespace'] ?? rest['-n'];
  const options = {
    ...(data === undefined ? {} : { data }),
    ...(kubeconfig === undefined ? {} : { kubeconfig }),
    ...(context === undefined ? {} : { context }),
    ...(namespace === undefined ? {} : { namespace }),
  };
  const place = placeOf(options, environment);
  // The kubeconfig of a data folder on this machine says no more than the folder.
  const folder = localFolderOf(place, environment);
  const names =
    folder === undefined
      ? await (await import('./server-names.ts')).serverNames(kind, current, options, environment)
      : await folderNames(kind, current, folder, namespace ?? DEFAULT_NAMESPACE);
  const wanted = [...new Set(names)].filter((name) => name.startsWith(current) && SAFE_NAME.test(name));
  return wanted.sort().slice(0, MAX_NAMES);
}

function optionsOf(line: readonly string[]): Partial<Record<Option, string>> {
  const options: Partial<Record<Option, string>> = {};
  for (const [at, word] of line.entries()) {
    for (const option of VALUES) {
      const value = word === option ? line[at + 1] : word.startsWith(`${option}=`) ? word.slice(option.length + 1) : '';
      if (value !== undefined && value !== '') options[option] = value;
    }
  }
  return options;
}

async function folderNames(kind: string, current: string, folder: DataFolder, namespace: string): Promise<string[]> {
  if (!existsSync(folder.database)) return [];
  const database = new DatabaseSync(folder.database, { readOnly: true, timeout: 200 });
  try {
    const repositories = database
      .prepare('SELECT object FROM objects WHERE topic = ?')
      .all('config.porch.kpt.dev/v1alpha1/Repository')
      .map(({ object }) => JSON.parse(String(object)) as Repository)
      .filter(({ metadata }) => metadata.namespace === namespace);
    const names = repositories.map(({ metadata }) => metadata.name);
    if (kind === 'repositories') return names;
    const [repository = '', ...more] = current.split('.');
    const chosen = repositories.filter(({ metadata: { name } }) =>
      more.length === 0 ? name.startsWith(repository) : name === repository,
    );
    // What the last "sluice up" showed; it keeps that up to date.
    const prefix = `${namespace}/${current}`;
    const shown = database
      .prepare('SELECT key FROM notes WHERE topic = ? AND key >= ? AND key < ? LIMIT ?')
      .all('versions/packagerevisions', prefix, `${prefix}\u{10ffff}`, MAX_NAMES)
      .map(({ key }) => String(key).slice(namespace.length + 1));
    const found = await Promise.all(chosen.map((one) => namesInGit(one, folder).catch(() => [])));
    return [...shown, ...found.flat()];
  } finally {
    database.close();
  }
}

/** Drafts, proposals and publications of a repository on this machine, by its refs. */
async function namesInGit({ metadata, spec }: Repository, { path }: DataFolder): Promise<string[]> {
  const { repo = '', directory = '/' } = spec?.git ?? {};
  const git = repo.startsWith('sluice:')
    ? join(path, 'repositories', basename(repo))
    : repo.startsWith('file:')
      ? fileURLToPath(repo)
      : repo;
  if (!git.startsWith('/')) return [];
  const prefix = directory.replaceAll(/^\/+|\/+$/g, '');
  const { stdout } = await promisify(execFile)(
    'git',
    [
      ...['--git-dir', git, 'for-each-ref', `--count=${MAX_NAMES}`, '--format=%(refname)%00%(contents)%00%00'],
      ...['refs/heads/drafts', 'refs/heads/proposed', 'refs/tags'],
    ],
    { maxBuffer: 64 * 1024 * 1024, timeout: 1000, env: { ...process.env, GIT_OPTIONAL_LOCKS: '0' } },
  );
  return stdout.split('\0\0\n').flatMap((entry) => {
    const [ref = '', message = ''] = entry.split('\0');
    const named = ref.replace(/^refs\/(?:heads\/(?:drafts|proposed)|tags)\//, '');
    if (named === ref || (prefix !== '' && !named.startsWith(`${prefix}/`))) return [];
    const segments = named.slice(prefix === '' ? 0 : prefix.length + 1).split('/');
    // A tag is named by its number; the commit says from which workspace it comes.
    const workspace = /^kpt:.*"workspaceName":"([^"]+)"/m.exec(message)?.[1];
    if (ref.startsWith('refs/tags/') && workspace !== undefined) segments.splice(-1, 1, workspace);
    return segments.length < 2 ? [] : [[metadata.name, ...segments].join('.')];
  });
}
