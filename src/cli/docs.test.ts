import { readFileSync } from 'node:fs';
import type { Command } from 'commander';
import { expect, test } from 'vitest';
import { ERROR_CODES } from '../foundation/sluice-error.ts';
import { Terminal } from './output/terminal.ts';
import { buildProgram } from './program/program.ts';

const page = (name: string) => readFileSync(new URL(`../../docs/${name}`, import.meta.url), 'utf8');

function* leaves(command: Command, path: readonly string[] = []): Generator<[string, Command]> {
  for (const sub of command.commands) {
    const deeper = [...path, sub.name()];
    if (sub.commands.length > 0) yield* leaves(sub, deeper);
    else yield [deeper.join(' '), sub];
  }
}

test('docs/cli.md speaks of every command', () => {
  const sink = { write: () => true };
  const program = buildProgram({ terminal: new Terminal(sink, sink, {}), environment: {} }, () => undefined);
  const text = page('cli.md');
  const names = [...leaves(program)].map(([path]) => path);
  expect(names.length).toBeGreaterThan(20);
  expect(names.filter((name) => !text.includes(name))).toEqual([]);
});

test('docs/errors.md tells every code with its exit code and reason', () => {
  const text = page('errors.md');
  for (const [code, { exit, reason, status }] of Object.entries(ERROR_CODES)) {
    expect(text).toContain(`| \`${code}\` | ${exit} | ${reason} (${status}) |`);
  }
});
