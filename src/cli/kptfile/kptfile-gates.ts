import { conditionsOf, gatesOf, readKptfile } from '../../../kptfile-schema/index.ts';
import { SluiceError } from '../../foundation/sluice-error.ts';
import { checkKptfile } from '../fn/check-kptfile.ts';
import type { CommandResult, Invocation } from '../output/invocation.ts';
import { printable } from '../output/printable.ts';
import { toJson, toYaml } from '../output/structured.ts';
import { table } from '../output/table.ts';
import { readKptfileAt } from './kptfile-path.ts';

export interface GatesOptions {
  readonly output: 'table' | 'json' | 'yaml';
  readonly headers: boolean;
}

/** Lets a script distinguish a package that is not ready from an error. */
const EXIT_CLOSED = 3;

/** `sluice kptfile gates` */
export async function kptfileGates(
  folder: string,
  options: GatesOptions,
  { terminal }: Invocation,
): Promise<CommandResult> {
  const { path, text } = await readKptfileAt(folder);
  checkKptfile(path, text);
  const result = readKptfile(text);
  if (!result.ok) {
    const { line = 1, column = 1, message } = result.error;
    throw new SluiceError('InvalidInput', `${path}:${line}:${column}: ${message}`);
  }
  const conditions = conditionsOf(result.kptfile);
  const gateTypes = gatesOf(result.kptfile);
  const describe = (type: string) => {
    const condition = conditions.get(type);
    return {
      type,
      status: condition?.status ?? 'Missing',
      reason: condition?.reason ?? '',
      message: condition?.message ?? '',
    };
  };
  const gates = gateTypes.map((type) => ({ ...describe(type), open: conditions.get(type)?.status === 'True' }));
  const others = [...conditions.keys()].filter((type) => !gateTypes.includes(type)).map(describe);
  const allOpen = gates.every((gate) => gate.open);
  if (options.output === 'json') terminal.out.write(toJson({ path, open: allOpen, gates, otherConditions: others }));
  else if (options.output === 'yaml') {
    terminal.out.write(toYaml({ path, open: allOpen, gates, otherConditions: others }));
  } else {
    if (gates.length === 0) terminal.line(`${printable(path)} has no readiness gates`);
    const rows = [
      ...gates.map((gate) => [gate.open ? 'open' : 'closed', gate.type, gate.status, gate.reason, gate.message]),
      ...others.map((other) => ['no gate', other.type, other.status, other.reason, other.message]),
    ];
    const paint = (padded: string, column: number, value: string) =>
      column > 0 || value === 'no gate' ? padded : terminal.style(value === 'open' ? 'green' : 'yellow', padded);
    const titles = ['Gate', 'Condition', 'Status', 'Reason', 'Message'];
    if (rows.length > 0) terminal.out.write(table(titles, rows, { headers: options.headers, paint }));
  }
  return allOpen ? 0 : EXIT_CLOSED;
}
