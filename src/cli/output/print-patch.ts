import { printableLines } from './printable.ts';
import type { Style, Terminal } from './terminal.ts';

/** Prints a unified diff, coloured on a terminal. */
export function printPatch(terminal: Terminal, text: string): void {
  // A patch for a program keeps its bytes; for a terminal, control characters of files are escaped.
  const shown = terminal.out.isTTY === true ? printableLines(text) : text;
  terminal.out.write(
    shown.replace(/^.*$/gm, (line) => {
      const style = styleOf(line);
      return style === undefined ? line : terminal.style(style, line);
    }),
  );
}

function styleOf(line: string): Style | undefined {
  if (line.startsWith('+++') || line.startsWith('---') || line.startsWith('diff ')) return 'bold';
  if (line.startsWith('@@')) return 'cyan';
  if (line.startsWith('+')) return 'green';
  return line.startsWith('-') ? 'red' : undefined;
}
