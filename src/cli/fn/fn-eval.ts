import { SluiceError } from '../../foundation/sluice-error.ts';
import type { CommandResult, Invocation } from '../output/invocation.ts';
import { printable } from '../output/printable.ts';
import { deliver, destinationOf, withEdits } from './files/destination.ts';
import { readPackageFolder, writePackageFolder } from './files/package-folder.ts';
import { stdinFiles } from './files/stdin-files.ts';
import { evaluatedFunction, type FunctionOptions } from './run/evaluated-function.ts';
import { type RunningOptions, runFunctions } from './run/run-functions.ts';
import { pipelineEntry, withFunction } from './run/saved-function.ts';

export interface EvalOptions extends RunningOptions, FunctionOptions {
  readonly save?: boolean;
  readonly network?: boolean;
}

/** `sluice fn eval`; `words` are those before `--`, `settings` those after it. */
export async function fnEval(
  words: readonly string[],
  settings: readonly string[],
  options: EvalOptions,
  invocation: Invocation,
): Promise<CommandResult> {
  const { terminal } = invocation;
  const [place = '.', ...others] = words;
  if (others.length > 0)
    throw new SluiceError(
      'InvalidInput',
      `one folder is expected, not also ${printable(others.join(' '))}; the configuration comes after --`,
    );
  const only = await evaluatedFunction(settings, options);
  const piped = place === '-';
  const destination = (await destinationOf(options.output)) ?? (piped ? { type: 'stdout' as const } : undefined);
  if (piped && options.save === true)
    throw new SluiceError('InvalidInput', '--save needs a folder with a Kptfile; resources of stdin have none');
  const folder = piped ? { path: place, files: await stdinFiles(), notes: [] } : await readPackageFolder(place);
  for (const note of folder.notes) terminal.note(`[WARN] ${note}`);
  if (options.save === true && !folder.files.has('Kptfile'))
    throw new SluiceError('InvalidInput', `--save: ${printable(place)} has no Kptfile`);
  const entry = options.save === true ? await pipelineEntry(only, options.fnConfig, folder.path) : undefined;
  const outcome = await runFunctions(
    { files: folder.files, only, permissions: { exec: true, network: options.network === true }, options },
    invocation,
  );
  if (typeof outcome === 'number') return outcome;
  const { edits, failure } = outcome;
  if (failure !== undefined) {
    if (outcome.steps.at(-1)?.unavailable === true) {
      const near = (await import('./near-built-ins.ts')).nearBuiltIns(options.image ?? '');
      if (near.length > 0) terminal.note(`Did you mean the built-in function ${near.join(' or ')}?`);
    }
    terminal.note(`${terminal.style('red', 'error:', terminal.err)} ${printable(failure)}`);
    return 1;
  }
  const kept = new Map(destination === undefined ? edits : []);
  if (entry !== undefined) {
    const kptfile = kept.get('Kptfile') ?? folder.files.get('Kptfile') ?? '';
    const { text, isNew } = withFunction(kptfile, only.list, entry);
    kept.set('Kptfile', text);
    const name = JSON.stringify(entry.image ?? entry.exec);
    terminal.note(`${isNew ? 'Added' : 'Updated'} ${printable(name)} as ${options.type} in the Kptfile.`);
  }
  if (!piped) await writePackageFolder(folder.path, kept);
  if (destination !== undefined) await deliver(withEdits(folder.files, edits), destination, terminal);
  return 0;
}
