import { checkNoFolder, writeNewFolder } from '../fn/package-folder.ts';
import { stdinFiles } from '../fn/stdin-files.ts';
import type { Outcome } from '../program/invocation.ts';

/** `sluice fn sink` */
export async function fnSink(folder: string): Promise<Outcome> {
  await checkNoFolder(folder);
  await writeNewFolder(folder, await stdinFiles());
  return 0;
}
