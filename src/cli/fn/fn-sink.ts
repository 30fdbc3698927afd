import type { CommandResult } from '../output/invocation.ts';
import { checkNoFolder, writeNewFolder } from './files/package-folder.ts';
import { stdinFiles } from './files/stdin-files.ts';

/** `sluice fn sink` */
export async function fnSink(folder: string): Promise<CommandResult> {
  await checkNoFolder(folder);
  await writeNewFolder(folder, await stdinFiles());
  return 0;
}
