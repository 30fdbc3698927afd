import { lintKptfile } from '../../../kptfile-schema/index.ts';
import { printable } from '../output/printable.ts';
import type { Invocation, Outcome } from '../program/invocation.ts';
import { readKptfileAt } from './kptfile-path.ts';

/** `sluice kptfile lint`: `<file>:<line>:<column>: <severity>: <message>`. Exit code 1 if there is an error, 0 with warnings only. */
export async function kptfileLint(folders: readonly string[], { terminal }: Invocation): Promise<Outcome> {
  let errors = 0;
  let warnings = 0;
  for (const folder of folders.length === 0 ? ['.'] : folders) {
    const { path, text } = await readKptfileAt(folder);
    for (const finding of lintKptfile(text)) {
      const isError = finding.severity === 'error';
      if (isError) errors++;
      else warnings++;
      const severity = terminal.style(isError ? 'red' : 'yellow', finding.severity);
      const place = `${printable(path)}:${finding.line}:${finding.column}`;
      terminal.line(`${place}: ${severity}: ${printable(finding.message)} (${finding.code})`);
    }
  }
  if (errors + warnings > 0) terminal.note(`${count(errors, 'error')}, ${count(warnings, 'warning')}`);
  return errors > 0 ? 1 : 0;
}

function count(number: number, word: string): string {
  return `${number} ${word}${number === 1 ? '' : 's'}`;
}
