import { basename, join } from 'node:path';
import { SluiceError } from '../../foundation/sluice-error.ts';
import { isKptfilePath } from '../../package/merge/package-files.ts';
import type { CommandResult, Invocation } from '../output/invocation.ts';
import { printable } from '../output/printable.ts';
import { deliver, destinationOf, withEdits } from './files/destination.ts';
import { readPackageFolder, writePackageFolder } from './files/package-folder.ts';
import { type RunningOptions, runFunctions } from './run/run-functions.ts';

export interface RenderOptions extends RunningOptions {
  readonly allowExec?: boolean;
  readonly allowNetwork?: boolean;
  readonly renderStatus?: boolean;
}

/** `sluice fn render` */
export async function fnRender(place: string, options: RenderOptions, invocation: Invocation): Promise<CommandResult> {
  const { terminal } = invocation;
  const destination = await destinationOf(options.output);
  const folder = await readPackageFolder(place);
  for (const note of folder.notes) terminal.note(`[WARN] ${note}`);
  const kptfile = folder.files.get('Kptfile');
  if (kptfile === undefined)
    throw new SluiceError('InvalidInput', `${printable(place)} has no Kptfile; name the folder of a package`);
  const { checkKptfile } = await import('./check-kptfile.ts');
  for (const [path, text] of folder.files) if (isKptfilePath(path)) checkKptfile(join(place, path), text);
  const running = runFunctions(
    {
      files: folder.files,
      root: basename(folder.path),
      permissions: { exec: options.allowExec === true, network: options.allowNetwork === true },
      options,
    },
    invocation,
  );
  // The Kptfile modules are large; they are loaded while the worker starts.
  const [outcome, { renderedKptfile }] = await Promise.all([running, import('./rendered-kptfile.ts')]);
  if (typeof outcome === 'number') return outcome;
  const { edits, steps, failure } = outcome;
  if (destination === undefined) {
    const text = renderedKptfile(kptfile, outcome, options.renderStatus === true);
    await writePackageFolder(folder.path, text === kptfile ? edits : new Map(edits).set('Kptfile', text));
  }
  if (failure !== undefined) {
    if (edits.size > 0) terminal.note('What was rendered before the failure is kept, as the Kptfile asks.');
    terminal.note(`${terminal.style('red', 'error:', terminal.err)} ${printable(failure)}`);
    return 1;
  }
  if (destination === undefined) {
    const packages = [...folder.files.keys()].filter(isKptfilePath).length;
    terminal.note(`Successfully executed ${steps.length} function(s) in ${packages} package(s).`);
  } else await deliver(withEdits(folder.files, edits), destination, terminal);
  return 0;
}
