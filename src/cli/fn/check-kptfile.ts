import { lintKptfile } from '../../../kptfile-schema/index.ts';
import { SluiceError } from '../../foundation/sluice-error.ts';
import { printable } from '../output/printable.ts';

/** Throws InvalidInput for a Kptfile that kpt rejects, such as one with a misspelt field, with the place of the first error. */
export function checkKptfile(path: string, text: string): void {
  const errors = lintKptfile(text).filter(({ severity }) => severity === 'error');
  const [first] = errors;
  if (first === undefined) return;
  const more = errors.length === 1 ? '' : ` (and ${errors.length - 1} more; "sluice kptfile lint" lists them)`;
  throw new SluiceError(
    'InvalidInput',
    `${printable(path)}:${first.line}:${first.column}: ${printable(first.message)}${more}`,
  );
}
