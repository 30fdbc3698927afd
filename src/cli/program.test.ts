import { load } from 'js-yaml';
import { describe, expect, test } from 'vitest';
import { actorOf } from './access/actor.ts';
import { runCli } from './testing.ts';

describe('command line', () => {
  test('help names every command, and every command has help with an example', async () => {
    const help = await runCli(['--help']);
    expect(help.code).toBe(0);
    for (const name of [
      'up',
      'demo',
      'repo',
      'rpkg',
      'why',
      'backup',
      'restore',
      'token',
      'key',
      'fn',
      'kptfile',
      'version',
      'completion',
    ]) {
      expect(help.stdout).toContain(`  ${name}`);
    }
    for (const path of [
      'up',
      'why',
      'repo reg',
      'rpkg push',
      'rpkg condition set',
      'kptfile gates',
      'fn render',
      'fn eval',
      'fn source',
      'fn sink',
      'fn doc',
      'token create',
      'key show',
      'key rotate',
      'key revoke',
      'key trust',
      'restore',
      'completion',
    ]) {
      const { code, stdout } = await runCli([...path.split(' '), '--help']);
      expect([path, code, stdout.includes('Examples:')]).toEqual([path, 0, true]);
    }
  });

  test('an invalid command line is reported on stderr with exit code 2 and nothing on stdout', async () => {
    for (const words of [['nonsense'], ['rpkg', 'init'], ['rpkg', 'get', '-o', 'xml'], ['why']]) {
      const { code, stdout, stderr } = await runCli(words);
      expect([words, code, stdout]).toEqual([words, 2, '']);
      expect(stderr).toMatch(/^error: /);
    }
    expect((await runCli(['wyh'])).stderr).toContain('why');
  });

  test('help of an unknown command is an error with the near name, and help of a known one is its help', async () => {
    const { code, stdout, stderr } = await runCli(['help', 'wyh']);
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toMatch(/^error: unknown command 'wyh'\n\(Did you mean why\?\)/);
    for (const words of [['help'], ['help', 'why'], ['help', 'rpkg'], ['help', 'help']]) {
      const known = await runCli(words);
      expect([words, known.code, known.stdout.startsWith('Usage: sluice')]).toEqual([words, 0, true]);
    }
  });

  test('an unknown command lists those that there are, and an unknown option suggests none of the program alone', async () => {
    expect((await runCli(['wave', 'list'])).stderr).toMatch(/^error: unknown command 'list'\n\(commands: get, watch, /);
    const { stderr } = await runCli(['wave', 'promote', 'web', '--reason', 'fine']);
    expect(stderr).toMatch(/^error: unknown option '--reason'\n\(--help/);
    expect((await runCli(['wave', 'get', '--target'])).stderr).toContain('(Did you mean --targets?)');
  });

  test('all required options that are missing are named at once', async () => {
    const { code, stderr } = await runCli(['rpkg', 'init', 'web']);
    expect(code).toBe(2);
    expect(stderr).toMatch(/^error: required options '--repository <name>', '--workspace <name>' not specified\n/);
    expect((await runCli(['rpkg', 'init', 'web', '--repository', 'a'])).stderr).toMatch(
      /^error: required option '--workspace <name>' not specified\n/,
    );
  });

  test('under npm, commands in messages can be copied as they are', async () => {
    const words = ['rpkg', 'get', '--data', '/nonexistent/place'];
    expect((await runCli(words, { npm_command: 'exec' })).stderr).toContain('with "npx sluice up"');
    expect((await runCli(words)).stderr).toContain('with "sluice up"');
  });

  test('version is printed as text, JSON or YAML', async () => {
    const json = JSON.parse((await runCli(['version', '-o', 'json'])).stdout);
    expect(load((await runCli(['version', '-o', 'yaml'])).stdout)).toEqual(json);
  });

  test('the help of groups that work on servers lists the precedence of places', async () => {
    for (const group of ['rpkg', 'repo']) {
      const { stdout } = await runCli([group, '--help']);
      expect(stdout).toMatch(/^ {2}--kubeconfig .*\n {2}--data.*\n {2}\$KUBECONFIG.*\n {2}\.sluice/m);
    }
  });

  test('errors have a next step, and a stack only on request', async () => {
    const quiet = await runCli(['rpkg', 'get', '--data', '/nonexistent/place']);
    expect(quiet.code).toBe(1);
    expect(quiet.stderr).toContain('sluice repo reg');
    expect(quiet.stderr).not.toContain('    at ');
    const loud = await runCli(['rpkg', 'get', '--data', '/nonexistent/place'], { SLUICE_DEBUG: '1' });
    expect(loud.stderr).toContain('    at ');
  });

  test('what the system refuses is no defect', async () => {
    const { code, stderr } = await runCli(['repo', 'reg', '/tmp/x.git', '--data', '/proc/version/data']);
    expect(code).toBe(1);
    expect(stderr).toMatch(/^error: cannot make the data folder \S+: E[A-Z]+: /);
    expect(stderr).not.toContain('defect');
  });

  test('the actor is --as, then SLUICE_USER, then the user of the system', () => {
    expect(actorOf({ as: 'eve', asGroup: ['ops'] }, { SLUICE_USER: 'anna' })).toEqual({ name: 'eve', groups: ['ops'] });
    expect(actorOf({}, { SLUICE_USER: 'anna' })).toEqual({ name: 'anna' });
    expect(actorOf({}, {}).name).not.toBe('');
    for (const name of ['', 'a b', 'a\u001b[1m', 'x'.repeat(300)]) {
      expect(() => actorOf({ as: name }, {})).toThrow(/cannot be the name of an actor/);
    }
  });

  test('completion of other shells names the commands; an unknown shell is refused', async () => {
    for (const shell of ['zsh', 'fish']) {
      const { code, stdout } = await runCli(['completion', shell]);
      expect([code, stdout.includes('propose-delete')]).toEqual([0, true]);
      expect(stdout).toMatch(/__complete .*2>\/dev\/null/);
      expect(stdout).toContain('set-namespace');
      // completion/shells.process.test.ts runs them.
    }
    expect(await runCli(['completion', 'tcsh'])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('bash, zsh, fish'),
    });
  });

  test('version names the engine', async () => {
    expect((await runCli(['--version'])).stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
    const { code, stdout } = await runCli(['version', '-o', 'json']);
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({
      sluice: expect.any(String),
      node: process.versions.node,
      engine: 'native',
    });
  });
});
