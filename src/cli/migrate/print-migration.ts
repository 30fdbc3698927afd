import { counted } from '../../foundation/text/counted.ts';
import { printable } from '../output/printable.ts';
import { toJson, toYaml } from '../output/structured.ts';
import { table } from '../output/table.ts';
import type { Terminal } from '../output/terminal.ts';
import { exitCodeOf, type MigrationReport, type Note, type RepositoryReport } from './migration-report.ts';

/** Maximum number of names that a note lists in text; all are in JSON and YAML. */
const MAX_NAMES = 3;
/** Maximum number of rows of differences in text. */
const MAX_ROWS = 200;

const ACTIONS: Readonly<Record<RepositoryReport['action'], string>> = {
  register: 'would register',
  registered: 'registered',
  present: 'present',
  conflict: 'conflict',
  blocked: 'blocked',
};

export function printMigration(terminal: Terminal, report: MigrationReport, output: 'table' | 'json' | 'yaml'): void {
  if (output !== 'table') {
    const value = { ...report, alike: exitCodeOf(report) === 0 };
    terminal.out.write(output === 'json' ? toJson(value) : toYaml(value));
    return;
  }
  const { repositories, differences, notes } = report;
  if (repositories.length > 0) {
    const count = (number: number | undefined) => (number === undefined ? '-' : String(number));
    const rows = repositories.map((one) => [
      ...[`${one.namespace}/${one.name}`, one.address, ACTIONS[one.action], secretText(one)],
      ...[count(one.porch), count(one.sluice), count(one.alike)],
    ]);
    terminal.out.write(table(['repository', 'address', 'action', 'secret', 'porch', 'sluice', 'alike'], rows));
  }
  if (differences.length > 0) {
    terminal.line();
    const rows = differences
      .slice(0, MAX_ROWS)
      .map(({ namespace, name, field, porch, sluice, next }) => [`${namespace}/${name}`, field, porch, sluice, next]);
    terminal.out.write(table(['package revision', 'differs in', 'porch', 'sluice', 'next'], rows));
    if (differences.length > MAX_ROWS)
      terminal.line(`and ${differences.length - MAX_ROWS} more differences; -o json prints all of them`);
  }
  for (const { namespace, name, message, next } of repositories)
    if (message !== undefined) say(terminal, 'warning:', `${namespace}/${name}: ${message}`, next);
  for (const { namespace, name, metadata = [] } of repositories) {
    if (metadata.length === 0) continue;
    const done = metadata.every(({ copied }) => copied);
    const shown = metadata.slice(0, MAX_NAMES).map((one) => `${one.name} (${one.what})`);
    const more = metadata.length > MAX_NAMES ? ` and ${metadata.length - MAX_NAMES} more` : '';
    const what = `metadata of ${counted(metadata.length, 'package revision')} ${done ? 'copied' : 'only at Porch'}`;
    say(terminal, 'note:', `${namespace}/${name}: ${what}: ${shown.join(', ')}${more}`);
  }
  for (const note of notes) say(terminal, 'note:', noteText(note), note.next);
  say(terminal, '', summaryOf(report));
}

function say(terminal: Terminal, label: string, text: string, next?: string): void {
  const shown = label === '' ? '' : `${terminal.style('yellow', label, terminal.err)} `;
  terminal.note(`${shown}${printable(text)}${next === undefined ? '' : `\n  next: ${printable(next)}`}`);
}

function secretText({ secret }: RepositoryReport): string {
  if (secret === undefined) return '-';
  const states = { present: 'present', missing: 'missing', copy: 'would copy', copied: 'copied' } as const;
  return `${secret.name} (${states[secret.state]})`;
}

function noteText({ namespace, subject, message, names }: Note): string {
  const shown = names.slice(0, MAX_NAMES).join(', ');
  const more = names.length > MAX_NAMES ? ` and ${names.length - MAX_NAMES} more` : '';
  return `${namespace}/${subject}: ${message}${names.length === 0 ? '' : `: ${shown}${more}`}`;
}

function summaryOf(report: MigrationReport): string {
  const { repositories, differences, applied } = report;
  const number = (...actions: RepositoryReport['action'][]) =>
    repositories.filter(({ action }) => actions.includes(action)).length;
  const isAlike = (one: RepositoryReport) =>
    one.alike !== undefined && one.alike === one.porch && one.alike === one.sluice;
  const parts = [
    `${repositories.filter(isAlike).length} of ${counted(repositories.length, 'repository', 'repositories')} alike`,
    differences.length === 0 ? '' : counted(differences.length, 'difference'),
    number('register') === 0 ? '' : `${number('register')} to register`,
    number('conflict', 'blocked') === 0 ? '' : `${number('conflict', 'blocked')} that cannot be migrated`,
  ];
  const dry = applied ? '' : '; nothing was changed, --yes registers and copies';
  return `${parts.filter((part) => part !== '').join(', ')}${dry}`;
}
