import { realpath } from 'node:fs/promises';
import { isAbsolute, relative, sep } from 'node:path';
import { editKptfile, type KptFunction, type KptfileEdit, readKptfile } from '../../../../kptfile-schema/index.ts';
import { SluiceError } from '../../../foundation/sluice-error.ts';
import { completeImage } from '../../../function/catalog/image-name.ts';
import type { SingleFunction } from '../../../function/model/pipeline.ts';
import { printable } from '../../output/printable.ts';

/** The entry of a pipeline for a function of a command line. Its configuration must be a file of the package, if it has one. */
export async function pipelineEntry(
  only: SingleFunction,
  configFile: string | undefined,
  folder: string,
): Promise<KptFunction> {
  const entry = withCompleteImage(only.function);
  if (only.config === undefined) return entry;
  if (configFile === undefined)
    throw new SluiceError(
      'InvalidInput',
      '--save takes a configuration of key=value, or a file of the package with --fn-config',
    );
  const path = relative(folder, await realpath(configFile));
  if (path.startsWith(`..${sep}`) || isAbsolute(path))
    throw new SluiceError('InvalidInput', `--save: ${printable(configFile)} must lie in ${printable(folder)}`);
  return { ...entry, configPath: path.split(sep).join('/') };
}

/** A Kptfile with a function in a pipeline: in the place of the entry with the same image or program, else at the end. */
export function withFunction(
  kptfile: string,
  list: SingleFunction['list'],
  entry: KptFunction,
): { readonly text: string; readonly isNew: boolean } {
  const read = readKptfile(kptfile);
  const entries = (read.ok ? read.kptfile.pipeline?.[list] : undefined) ?? [];
  const same = ({ image, tag, exec }: KptFunction) =>
    image === undefined ? exec !== undefined && exec === entry.exec : completeImage(image, tag) === entry.image;
  const index = entries.findIndex(same);
  const add = { op: 'addFunction', list, function: entry } as const;
  const edits: KptfileEdit[] =
    index === -1
      ? [add]
      : [
          { op: 'removeFunction', list, index },
          { ...add, index },
        ];
  return { text: editKptfile(kptfile, edits), isNew: index === -1 };
}

/** With registry and tag, as kpt saves it: the name in a file must mean the same to every reader. */
function withCompleteImage({ tag, ...entry }: KptFunction): KptFunction {
  return entry.image === undefined ? entry : { ...entry, image: completeImage(entry.image, tag) };
}
