import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { Command } from 'commander';
import { expect, test } from 'vitest';
import { ERROR_CODES } from '../foundation/sluice-error.ts';
import { Terminal } from './output/terminal.ts';
import { buildProgram } from './program.ts';

const page = (name: string) => readFileSync(new URL(`../../docs/${name}`, import.meta.url), 'utf8');

function* leaves(command: Command, path: readonly string[] = []): Generator<[string, Command]> {
  for (const sub of command.commands) {
    const deeper = [...path, sub.name()];
    if (sub.commands.length > 0) yield* leaves(sub, deeper);
    else yield [deeper.join(' '), sub];
  }
}

test('docs/cli.md describes every command', () => {
  const sink = { write: () => true };
  const program = buildProgram({ terminal: new Terminal(sink, sink, {}), environment: {} }, () => undefined);
  const text = page('cli.md');
  const names = [...leaves(program)].map(([path]) => path);
  expect(names.length).toBeGreaterThan(20);
  expect(names.filter((name) => !text.includes(name))).toEqual([]);
});

test('docs/errors.md lists every code with its exit code and reason', () => {
  const text = page('errors.md');
  for (const [code, { exit, reason, status }] of Object.entries(ERROR_CODES)) {
    expect(text).toContain(`| \`${code}\` | ${exit} | ${reason} (${status}) |`);
  }
});

test('data folders, kubeconfigs, keys and credentials that the docs create are ignored by git', () => {
  const root = fileURLToPath(new URL('../..', import.meta.url));
  const pages = readdirSync(`${root}docs`).filter((name) => name.endsWith('.md'));
  const text = ['../README.md', ...pages].map(page).join('\n');
  const found = [
    ...[...text.matchAll(/--data ([a-z0-9.-]+)/g)].map(([, folder]) => `${folder}/objects.db`),
    ...[...text.matchAll(/> ([\w./-]*(?:kubeconfig|signers|known_hosts|token\.txt))\b/g)].map(([, file]) => file ?? ''),
    ...[...text.matchAll(/ssh-keygen [^\n`]*-f ([\w.-]+)/g)].map(([, file]) => file ?? ''),
    ...[...text.matchAll(/--(?!patch)[a-z-]+-file(?:=password=| )(\w[\w.-]*)/g)].map(([, file]) => file ?? ''),
  ];
  expect(found.length).toBeGreaterThan(8);
  const shown = found.filter((file) => spawnSync('git', ['check-ignore', '-q', file], { cwd: root }).status !== 0);
  expect(shown).toEqual([]);
});

test('the program of the page about pull requests names the variable that is missing', () => {
  const program = fileURLToPath(new URL('../../examples/pull-requests/host.mjs', import.meta.url));
  for (const [missing, env] of [
    ['FORGE', { FORGE_TOKEN_FILE: 'bob.token' }],
    ['FORGE_TOKEN_FILE', { FORGE: 'https://git.invalid' }],
  ] as const) {
    const { status, stderr } = spawnSync(process.execPath, [program, 'show', '1'], { env, encoding: 'utf8' });
    expect([status, stderr]).toEqual([2, `set ${missing}, as the beginning of this file shows\n`]);
  }
});
