import { SluiceError } from '../../foundation/sluice-error.ts';
import { readResources } from '../../function/resource/read-resources.ts';
import type { CommandResult, Invocation } from '../output/invocation.ts';
import { printable } from '../output/printable.ts';
import { deliver, destinationOf } from './files/destination.ts';
import { readPackageFolder } from './files/package-folder.ts';
import { readConfigFile } from './files/read-config-file.ts';

export interface SourceOptions {
  readonly fnConfig?: string;
  readonly output: string;
}

/** `sluice fn source` */
export async function fnSource(
  places: readonly string[],
  { fnConfig, output }: SourceOptions,
  { terminal }: Invocation,
): Promise<CommandResult> {
  const destination = (await destinationOf(output)) ?? { type: 'stdout' };
  const config = fnConfig === undefined ? undefined : await readConfigFile(fnConfig);
  const files = new Map<string, string>();
  for (const place of places.length === 0 ? ['.'] : places) {
    const folder = await readPackageFolder(place);
    for (const note of folder.notes) terminal.note(`[WARN] ${note}`);
    for (const [path, text] of folder.files) {
      if (files.has(path))
        throw new SluiceError(
          'InvalidInput',
          `several of the folders have a file ${printable(path)}: name the folder above them`,
        );
      files.set(path, text);
    }
  }
  for (const note of readResources(files).notes) terminal.note(`[WARN] ${printable(note)}`);
  await deliver(files, destination, terminal, config);
  return 0;
}
