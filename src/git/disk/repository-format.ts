import { randomUUID } from 'node:crypto';
import { mkdir, open, readdir, readFile, realpath, rename, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { isMissing, syncFolder } from '../../foundation/files/file-system.ts';
import { SluiceError } from '../../foundation/sluice-error.ts';

const TRUE = new Set(['true', 'yes', 'on', '1']);

/** Extensions of the repository format that change nothing for either engine. */
const HARMLESS = new Set([
  'noop',
  'objectformat',
  'refstorage',
  'preciousobjects',
  'worktreeconfig',
  'relativeworktrees',
]);

/**
 * Checks that there is a bare repository of a kind that both engines handle, and returns its real path. Throws NotFound, or
 * Unsupported for a work tree (unless it is only read), SHA-256, reftable, a partial clone, and formats that are not known.
 */
export async function checkRepository(path: string, readOnly = false): Promise<string> {
  const config = await readConfig(path);
  if (config === undefined || !(await isFolder(join(path, 'objects'))) || !(await isFolder(join(path, 'refs')))) {
    const hint = (await isFolder(join(path, '.git'))) ? 'it has a work tree; make a bare clone' : 'create it first';
    throw new SluiceError('NotFound', `there is no bare Git repository at ${path}: ${hint}`);
  }
  const unsupported = (what: string) => new SluiceError('Unsupported', `the Git repository at ${path} ${what}`);
  if (!readOnly && !TRUE.has(config.get('core.bare') ?? '')) throw unsupported('has a work tree: make a bare clone');
  const version = config.get('core.repositoryformatversion') ?? '0';
  if (version !== '0' && version !== '1') throw unsupported(`has the format version ${version}, which is not known`);
  const objects = config.get('extensions.objectformat') ?? 'sha1';
  if (objects !== 'sha1') throw unsupported(`uses ${objects} object ids; only SHA-1 is supported`);
  const refs = config.get('extensions.refstorage') ?? 'files';
  if (refs !== 'files') throw unsupported(`stores refs as ${refs}; only files are supported`);
  if (config.has('extensions.partialclone')) throw unsupported('is a partial clone: objects may be missing');
  for (const key of config.keys()) {
    const name = /^extensions\.(.*)$/.exec(key)?.[1];
    if (version === '1' && name !== undefined && !HARMLESS.has(name))
      throw unsupported(`has the extension ${name}, which is not known`);
  }
  return await realpath(path);
}

/**
 * Creates an empty bare repository, or leaves an existing one unchanged. HEAD is written last: without it there is no
 * repository, so that an interrupted creation is resumed. Throws InvalidInput for a folder with other content.
 */
export async function createRepository(path: string): Promise<void> {
  await mkdir(path, { recursive: true });
  const present = await readdir(path);
  if (present.includes('HEAD')) return;
  const foreign = present.find((name) => !/^(?:objects|refs|(?:config|HEAD)(?:\..*\.new)?)$/.test(name));
  if (foreign !== undefined)
    throw new SluiceError(
      'InvalidInput',
      `${path} holds ${JSON.stringify(foreign)} and is not a Git repository: use an empty folder`,
    );
  for (const folder of ['objects/info', 'objects/pack', 'refs/heads', 'refs/tags'])
    await mkdir(join(path, folder), { recursive: true });
  await writeDurably(join(path, 'config'), '[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = true\n');
  await writeDurably(join(path, 'HEAD'), 'ref: refs/heads/main\n');
  await syncFolder(path);
}

async function writeDurably(path: string, text: string): Promise<void> {
  // Several openings of one mirror can create it at the same time.
  const temporary = `${path}.${randomUUID()}.new`;
  const file = await open(temporary, 'w');
  try {
    await file.writeFile(text);
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(temporary, path);
}

/** `section.key` → value, of sections without a subsection, names in lower case; a key without value is true. */
async function readConfig(path: string): Promise<Map<string, string> | undefined> {
  let text: string;
  try {
    await stat(join(path, 'HEAD'));
    text = await readFile(join(path, 'config'), 'utf8');
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
  const values = new Map<string, string>();
  let section = '';
  for (const line of text.split('\n')) {
    const header = /^\s*\[\s*([A-Za-z0-9.-]+)\s*(".*")?\s*\]/.exec(line);
    if (header !== null) section = header[2] === undefined ? (header[1] ?? '').toLowerCase() : '';
    const entry = /^\s*(?:\[[^\]]*\]\s*)?([A-Za-z][A-Za-z0-9-]*)\s*(?:=\s*"?([^"#;]*)"?.*)?$/.exec(line);
    if (entry === null || section === '') continue;
    values.set(`${section}.${entry[1]?.toLowerCase()}`, (entry[2] ?? 'true').trim().toLowerCase());
  }
  return values;
}

async function isFolder(path: string): Promise<boolean> {
  try {
    return (await stat(path)).isDirectory();
  } catch (error) {
    if (isMissing(error)) return false;
    throw error;
  }
}
