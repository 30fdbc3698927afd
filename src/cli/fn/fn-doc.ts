import { SluiceError } from '../../foundation/sluice-error.ts';
import { builtIns } from '../../function/built-in/index.ts';
import { parseImageName } from '../../function/catalog/image-name.ts';
import type { CommandResult, Invocation } from '../output/invocation.ts';
import { printable } from '../output/printable.ts';
import { table } from '../output/table.ts';
import { nearBuiltIns } from './near-built-ins.ts';

export interface DocOptions {
  readonly image?: string;
}

/** `sluice fn doc` */
export function fnDoc(name: string | undefined, { image }: DocOptions, { terminal }: Invocation): CommandResult {
  const wanted = name ?? image;
  const known = [...builtIns].sort((a, b) => (a.name < b.name ? -1 : 1));
  if (wanted === undefined) {
    const rows = known.map((each) => [each.name, each.doc.summary]);
    terminal.out.write(table(['Function', 'Does'], rows));
    return 0;
  }
  const short = parseImageName(wanted).name;
  const found = known.find((each) => each.name === short);
  if (found === undefined) {
    const near = nearBuiltIns(short);
    const hint = near.length === 0 ? '' : ` (did you mean ${near.join(' or ')}?)`;
    throw new SluiceError(
      'NotFound',
      `no built-in function is called ${JSON.stringify(printable(short))}${hint}; "sluice fn doc" lists them, other images run as containers`,
    );
  }
  const { summary, description, examples, differences, compared } = found.doc;
  const title = (text: string) => terminal.line(`\n${terminal.style('bold', text)}`);
  terminal.line(`${terminal.style('bold', found.name)}: ${summary}`);
  terminal.line(`\n${description.trim()}`);
  if (examples.length > 0) title('Examples');
  for (const example of examples) terminal.line(`\n${example.trimEnd().replace(/^(?=.)/gm, '  ')}`);
  title('Differences from the published function');
  if (compared !== undefined) terminal.line(`\n  Compared with ${compared}.`);
  terminal.line(differences.length === 0 ? '\n  none known' : '');
  for (const difference of differences) terminal.line(`  - ${difference}`);
  return 0;
}
