import { readdirSync, readFileSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Command } from 'commander';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { dataFolder } from '../app/data/data-folder.ts';
import { ObjectSet } from '../app/data/object-set.ts';
import { systemClock } from '../foundation/time/clock.ts';
import { wavePlanKind } from '../resource/kinds/sluice/wave/wave-plan.ts';
import { PLACED_GROUPS } from './access/hints/command-for.ts';
import { Terminal } from './output/terminal.ts';
import { buildProgram } from './program.ts';
import { type CliFixture, cliFixture, runCli } from './testing.ts';

const GROUPS = PLACED_GROUPS.join('|');
const NAMESPACE = 'team';

let cli: CliFixture;
beforeEach(async () => {
  cli = await cliFixture();
});
afterEach(() => cli[Symbol.asyncDispose]());

/** Runs a command on a data folder that only the command line names. */
const run = (...words: string[]) => runCli([...words, '--data', cli.data], { SLUICE_USER: 'anna' });
const inTeam = (...words: string[]) => run(...words, '-n', NAMESPACE);

/** The commands on packages that a text names, however it does. */
function commandsIn(text: string): string[] {
  return text.match(new RegExp(`sluice (?:${GROUPS})(?: [^"\`;)\\n]*)?`, 'g')) ?? [];
}

/** Those of the commands that would work on something else. */
function misplaced(commands: readonly string[]): string[] {
  const isPlaced = (command: string) => command.includes(` --data ${cli.data}`);
  const isInTeam = (command: string) => / (?:-n|--namespace) team\b| -A\b| --all-namespaces\b/.test(command);
  return commands.filter((command) => !isPlaced(command) || !isInTeam(command));
}

const OBJECTS = `apiVersion: config.porch.kpt.dev/v1alpha1
kind: Repository
metadata: {name: twin, namespace: team}
spec: {type: git, git: {repo: ADDRESS, branch: main}}
---
apiVersion: config.porch.kpt.dev/v1alpha1
kind: Repository
# Of two that are registered within a second, the first name has the packages.
metadata: {name: second, namespace: default}
spec: {type: git, git: {repo: DEFAULT, branch: main}}
---
apiVersion: sluice.dev/v1alpha1
kind: PackagePolicy
metadata: {name: p, namespace: team}
spec:
  selector: {packages: [web]}
  requiredGates: [{conditionType: example.com/Tested, approveOnly: true}]
---
apiVersion: config.porch.kpt.dev/v1alpha1
kind: PackageVariant
metadata: {name: web-edge, namespace: team}
spec: {upstream: {repo: blueprints, package: web, revision: 1}, downstream: {repo: packages, package: edge}}
---
apiVersion: sluice.dev/v1alpha1
kind: WavePlan
metadata: {name: tp, namespace: team}
spec: {selector: {packages: [other]}, waves: [{name: canary, percent: 1}, {name: rest, percent: 100}]}
---
apiVersion: sluice.dev/v1alpha1
kind: DeliveryTarget
metadata: {name: east, namespace: team}
spec: {selector: {}, suspend: true, git: {repo: "sluice:///east.git"}}
`;

/** The same names in two namespaces, so that a command without -n does something wrong. */
async function prepare(): Promise<void> {
  for (const [repository, ...where] of [['a.git'], ['b.git', '-n', NAMESPACE]] as [string, ...string[]][]) {
    expect(await run('repo', 'reg', cli.bare(repository), '--name', 'packages', ...where)).toMatchObject({ code: 0 });
    await run('rpkg', 'init', 'web', '--repository', 'packages', '--workspace', 'v1', ...where);
    await run('rpkg', 'init', 'db', '--repository', 'packages', '--workspace', 'v1', ...where);
    expect(await run('rpkg', 'propose', 'packages.web.v1', ...where)).toMatchObject({ code: 0 });
  }
  await mkdir(join(cli.folder, 'conf'));
  const objects = OBJECTS.replace('ADDRESS', join(cli.folder, 'b.git')).replace('DEFAULT', join(cli.folder, 'a.git'));
  await writeFile(join(cli.folder, 'conf', 'objects.yaml'), objects);
}

test('every command that is printed names the namespace and the data folder of the command line', async () => {
  await prepare();
  const idle = await run('up', '--until-idle', '--config', join(cli.folder, 'conf'));
  expect(idle.stderr).toBe('');
  expect(idle.stdout).toContain('\n  team/packages.web.v1  Proposed\n');
  expect(idle.stdout).toContain('\n  packages.web.v1  Proposed\n');
  // Each revision once in either namespace.
  const next = idle.stdout.match(/^ +next: .*$/gm) ?? [];
  expect(next.length).toBeGreaterThan(1);
  expect(next.filter((line) => line.includes(' -n team --data ')).length).toBe(next.length / 2);
  expect(next.filter((line) => !line.includes(` --data ${cli.data}`))).toEqual([]);

  const twin = `"sluice repo unreg twin -n team --data ${cli.data}" forgets this one`;
  expect(idle.stdout).toMatch(/^ {2}team\/twin: .*Repository conflict/m);
  expect((await run('rpkg', 'get', '-A')).stderr).toContain(twin);
  // A warning about an object of another namespace than that of the command line.
  const second = `"sluice repo unreg second --data ${cli.data}" forgets this one`;
  expect(idle.stdout).toMatch(/^ {2}second: .*Repository conflict/m);
  expect((await inTeam('rpkg', 'get', '-A')).stderr).toContain(second);
  await run('repo', 'unreg', 'second');

  const lines: readonly (readonly [number, ...string[]])[] = [
    [1, 'why', 'packages.web.v1'],
    [1, 'why', 'packages.db.v1'],
    [1, 'why', 'packages.web.v1', '-o', 'json'],
    [1, 'why', 'packagevariant/web-edge'],
    [1, 'why', 'packagevariant/web-edg'],
    [1, 'why', 'packagepolicy/p'],
    [1, 'why', 'packagepolcy/p'],
    [1, 'rpkg', 'approve', 'packages.web.v1'],
    [1, 'rpkg', 'approve', 'packages.db.v1'],
    [1, 'rpkg', 'propose-delete', 'packages.web.v1'],
    [1, 'rpkg', 'get', 'nope.web.v1'],
    [1, 'rpkg', 'tree', 'nope'],
    [1, 'rpkg', 'init', 'web', '--repository', 'packages', '--workspace', 'v1'],
    [1, 'rpkg', 'revert', 'packages.web.v1'],
    [1, 'rpkg', 'condition', 'set', '-l', 'region=mars', 'example.com/Tested', 'True'],
    [1, 'repo', 'get', 'nope'],
    [1, 'repo', 'sync', 'nope'],
    [1, 'target', 'get', 'nope'],
    [1, 'target', 'watch', 'east', '--revision', 'packages.nope.v1'],
    [1, 'wave', 'get', 'nope'],
    [1, 'wave', 'watch', 'tp', '--timeout', '1ms'],
    [1, 'wave', 'pause', 'tp'],
    [1, 'wave', 'pause', 'tp'],
    [1, 'freeze', '--reason', 'inventory', '--name', 'tf'],
    [2, 'freeze', '--reason', 'inventory', '--name', 'tf'],
    [1, 'freeze', 'end', 'nope'],
    [2, 'why', 'freeze/tf'],
    [1, 'why', 'packages.web.v1'],
    [0, 'freeze', 'end', 'tf'],
  ];
  const found: unknown[] = [];
  for (const [least, ...words] of lines) {
    const { stdout, stderr } = await inTeam(...words);
    const commands = commandsIn(stdout + stderr);
    const isEnough = commands.length >= least;
    const wrong = misplaced(commands);
    if (!isEnough || wrong.length > 0) found.push([words.join(' '), wrong, isEnough ? '' : stdout + stderr]);
  }
  expect(found).toEqual([]);
});

test('the commands of a wave plan, of its messages and of its waves name them too', async () => {
  await run('repo', 'get');
  const objects = await ObjectSet.open({ folder: dataFolder(cli.data), clock: systemClock, write: true });
  const client = objects.client({ name: 'sluice' });
  const key = { namespace: NAMESPACE, name: 'tp' };
  const created = await client.create(wavePlanKind, {
    metadata: key,
    spec: { waves: [{ name: 'all', percent: 100 }] },
  });
  const status = {
    ...{ phase: 'Paused', pause: { cause: 'MaxFailures', message: 'two' }, pauses: 1 },
    message: 'MaxFailures: two; continue with "sluice wave resume tp"',
    waves: [
      {
        name: 'all',
        startedMs: 0,
        analysis: 1,
        targets: 1,
        verified: 0,
        failed: 0,
        message: 'see "sluice wave get tp"',
      },
    ],
  };
  await client.updateStatus(wavePlanKind, { ...created, status: status as never });
  await objects.close();
  const { stdout } = await inTeam('wave', 'get', 'tp');
  expect(stdout).toContain(`\nNext:\n  sluice wave resume tp -n team --data ${cli.data}\n`);
  expect(stdout).toMatch(/^all .* see "sluice wave get tp -n team --data \S+"$/m);
  for (const words of [
    ['get', 'tp'],
    ['watch', 'tp'],
    ['promote', 'tp', '--past', 'all'],
  ]) {
    const output = await inTeam('wave', ...words);
    const commands = commandsIn(output.stdout + output.stderr);
    expect([words, commands.length > 0, misplaced(commands)]).toEqual([words, true, []]);
  }
  const all = await run('wave', 'get', '-A');
  expect(misplaced(commandsIn(all.stdout))).toEqual([]);
});

test('exactly the groups whose commands get a place take --data, --kubeconfig, --context and -n', () => {
  const sink = { write: () => true };
  const program = buildProgram({ terminal: new Terminal(sink, sink, {}), environment: {} }, () => undefined);
  const takesAll = (command: Command) =>
    ['--data', '--kubeconfig', '--context', '--namespace'].every((flag) =>
      command.options.some(({ long }) => long === flag),
    );
  const wrong = [...leaves(program)].filter(([path, command]) => {
    const [group = ''] = path;
    return PLACED_GROUPS.includes(group) !== takesAll(command);
  });
  expect(wrong.map(([path]) => path.join(' '))).toEqual(['export', 'import', 'migrate porch']);
});

function* leaves(command: Command, path: readonly string[] = []): Generator<[readonly string[], Command]> {
  for (const sub of command.commands) {
    const deeper = [...path, sub.name()];
    if (sub.commands.length > 0) yield* leaves(sub, deeper);
    else yield [deeper, sub];
  }
}

test('messages quote the commands that they name, since only those get a place', () => {
  const root = fileURLToPath(new URL('../..', import.meta.url));
  const files = ['src', 'controllers'].flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.ts') && !/\.test\.ts$|\/[a-z-]+-commands?\.ts$/.test(name))
      // The notes of a migration name the namespace themselves: it works on several. The help of the program has examples.
      .filter((name) => !name.startsWith('cli/migrate/') && name !== 'cli/program.ts')
      .map((name) => join(folder, name)),
  );
  expect(files.length).toBeGreaterThan(500);
  // Not patterns, such as /"(sluice rpkg [^"]+)"/.
  const unquoted = new RegExp(`[^"\`'/]\\bsluice (?:${GROUPS})\\b(?! \\[)`);
  const found = files.flatMap((file) =>
    readFileSync(join(root, file), 'utf8')
      .split('\n')
      .filter((line) => unquoted.test(line) && !/^\s*(?:\/?\*|\/\/)/.test(line))
      .map((line) => `${file}: ${line.trim()}`),
  );
  expect(found).toEqual([]);
});
