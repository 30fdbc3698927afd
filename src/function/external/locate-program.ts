import { access, constants, realpath, stat } from 'node:fs/promises';
import { isAbsolute, join, resolve, sep } from 'node:path';
import { messageOf } from '../../foundation/sluice-error.ts';
import { splitCommand } from './split-command.ts';

/** The programs that may run. */
export type AllowedPrograms =
  /** Those in this folder and its folders, and none that a symbolic link leads to elsewhere. Relative names start from it. */
  | { readonly folder: string }
  /**
   * Every program, for users who run their own packages. Names with a slash are relative to `from`; others are looked up in `path`, a
   * list of folders separated by colons.
   */
  | { readonly anyFrom: string; readonly path: string };

export type Located =
  | { readonly program: string; readonly arguments: readonly string[] }
  /** Reason why it is not run, with the next step; one line. */
  | { readonly refusal: string };

/** The program that an `exec` entry of a pipeline names, as an absolute path without symbolic links, and its arguments. */
export async function locateProgram(exec: string, allowed: AllowedPrograms): Promise<Located> {
  const shown = `exec ${JSON.stringify(exec)}`;
  let words: string[];
  try {
    words = splitCommand(exec);
  } catch (error) {
    return { refusal: messageOf(error) };
  }
  const [name = '', ...rest] = words;
  const folder = 'folder' in allowed ? await realpath(allowed.folder).catch(() => undefined) : undefined;
  if ('folder' in allowed && folder === undefined)
    return { refusal: `${shown} cannot be run: the folder of allowed programs, ${allowed.folder}, does not exist` };
  for (const candidate of candidates(name, allowed)) {
    const program = await realpath(candidate).catch(() => undefined);
    if (program === undefined) continue;
    if (folder !== undefined && !program.startsWith(folder.endsWith(sep) ? folder : folder + sep))
      return { refusal: `${shown} cannot be run: it is outside of ${folder}, the folder of allowed programs` };
    if (await isExecutable(program)) return { program, arguments: rest };
    if (folder !== undefined || name.includes('/'))
      return { refusal: `${shown} cannot be run: ${candidate} is not an executable file; chmod +x makes it one` };
  }
  const where = folder ?? ('path' in allowed && !name.includes('/') ? 'PATH' : undefined);
  return {
    refusal: `${shown} cannot be run: there is no such program${where === undefined ? '' : ` in ${where}`}; install it there, or name an image or a built-in function`,
  };
}

function candidates(name: string, allowed: AllowedPrograms): string[] {
  if (isAbsolute(name)) return [name];
  if ('folder' in allowed) return [resolve(allowed.folder, name)];
  if (name.includes('/')) return [resolve(allowed.anyFrom, name)];
  // An empty part of a PATH is the current folder to shells; a package must not be able to put a program there.
  return allowed.path
    .split(':')
    .filter(isAbsolute)
    .map((folder) => join(folder, name));
}

/** True for a file that this process may execute. */
export async function isExecutable(path: string): Promise<boolean> {
  try {
    if (!(await stat(path)).isFile()) return false;
    await access(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
