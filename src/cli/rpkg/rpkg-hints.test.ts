import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type CliFixture, cliFixture } from '../testing.ts';

const NAME = 'packages.web.v1';

let cli: CliFixture;
beforeEach(async () => {
  cli = await cliFixture();
  await cli.run('repo', 'reg', cli.bare('packages.git'));
  await cli.run('rpkg', 'init', 'web', '--repository', 'packages', '--workspace', 'v1');
});
afterEach(() => cli[Symbol.asyncDispose]());

/** Pulls the package, edits its Kptfile and pushes it. */
async function push(edit: (kptfile: string) => string) {
  const folder = join(cli.folder, 'web');
  await cli.run('rpkg', 'pull', NAME, folder);
  const kptfile = join(folder, 'Kptfile');
  await writeFile(kptfile, edit(await readFile(kptfile, 'utf8')));
  return cli.run('rpkg', 'push', NAME, folder);
}

test('push warns of a field that kpt rejects; why recommends the repair, and not a proposal that would be refused', async () => {
  const pushed = await push((text) => text.replace('info:\n', 'info:\n  readinesGates: []\n'));
  expect(pushed).toMatchObject({ code: 0, stdout: `${NAME} pushed\n` });
  expect(pushed.stderr).toMatch(/^warning: Kptfile:\d+:3: kpt knows no field readinesGates .*readinessGates/m);
  const { next, reasons } = JSON.parse((await cli.run('why', NAME, '-o', 'json')).stdout);
  expect(reasons).toContainEqual(expect.objectContaining({ reason: 'InvalidKptfile' }));
  expect(next.map((command: string) => command.replace(/^(npx )?sluice /, ''))).toEqual([
    `rpkg pull ${NAME} web-v1`,
    'edit the files in web-v1',
    `rpkg push ${NAME} web-v1`,
  ]);
});

test('get -o wide shows why kpt rejects a Kptfile, with the gates before it where there are some', async () => {
  const reason = async () => {
    const [, row = ''] = (await cli.run('rpkg', 'get', '-o', 'wide', '--workspace', 'v1')).stdout.split('\n');
    expect(row.slice(row.search(/(?<= )(?:kpt|tested) /)).length).toBeLessThanOrEqual(160);
    return row.replace(/^.* packages +/, '').replace(/^(\S+ +(?:\d\/\d)?) +\d+\w+ +/, '$1 ');
  };
  const problem =
    /^False +kpt rejects the Kptfile: Kptfile:\d+:3: kpt knows no field readinesGates .*Did you mean readinessGates\?/;
  await push((text) => text.replace('info:\n', 'info:\n  readinesGates:\n    - conditionType: tested\n'));
  expect(await reason()).toMatch(problem);
  await push((text) => text.replace('info:\n', 'info:\n  readinessGates:\n    - conditionType: tested\n'));
  expect(await reason()).toMatch(/^False +0\/1 tested \([^;]*\); kpt rejects the Kptfile: /);
  await cli.run('rpkg', 'condition', 'set', NAME, 'tested', 'True');
  expect(await reason()).toMatch(/^False +1\/1 kpt rejects the Kptfile: /);
});

test('the path of a package is answered with the names of its revisions', async () => {
  for (const words of [['propose'], ['upgrade', '--workspace', 'v2']]) {
    const { code, stderr } = await cli.run('rpkg', words[0] ?? '', 'packages/web', ...words.slice(1));
    expect(code).toBe(1);
    expect(stderr).toContain(
      `"packages/web" is the path of a package, and no name of a package revision; its revisions are ${NAME}`,
    );
  }
});

test('condition set warns of a type without a gate, and names a similar one', async () => {
  await push((text) => text.replace('info:\n', 'info:\n  readinessGates:\n    - conditionType: example.com/Tested\n'));
  const warning = (type: string) =>
    `warning: ${NAME} has no gate of type ${type}, so this condition opens none; did you mean example.com/Tested? Withdraw it with "sluice rpkg condition rm ${NAME} ${type}"\n`;
  for (const type of ['example.com/Testd', 'example.com/tested']) {
    const { code, stderr } = await cli.run('rpkg', 'condition', 'set', NAME, type, 'True');
    expect([type, code, stderr]).toEqual([type, 0, warning(type)]);
  }
  expect(await cli.run('rpkg', 'condition', 'set', NAME, 'example.com/Tested', 'True')).toMatchObject({ stderr: '' });
  const misspelt = await cli.run('rpkg', 'condition', 'rm', NAME, 'example.com/Testedd');
  expect(misspelt).toMatchObject({ code: 1, stdout: '' });
  expect(misspelt.stderr).toContain(
    `${NAME} has no condition "example.com/Testedd"; did you mean "example.com/Tested"?`,
  );
  expect(await cli.run('rpkg', 'condition', 'rm', NAME, 'example.com/Tested')).toMatchObject({ code: 0 });
  expect((await cli.run('rpkg', 'condition', 'set', NAME, 'other.example.org/Scanned', 'True')).stderr).toBe(
    `warning: ${NAME} has no gate of type other.example.org/Scanned, so this condition opens none; its gates: example.com/Tested. Withdraw it with "sluice rpkg condition rm ${NAME} other.example.org/Scanned"\n`,
  );
});

test('a list of a repository that is not registered is an error, and not empty', async () => {
  const { code, stdout, stderr } = await cli.run('rpkg', 'get', '--repository', 'package');
  expect([code, stdout]).toEqual([1, '']);
  expect(stderr).toBe('error: repository "package" is not registered; did you mean packages?\n');
});

test('a push to a proposal names the command that returns it to Draft, after which it can be pushed', async () => {
  const folder = join(cli.folder, 'web');
  await cli.run('rpkg', 'pull', NAME, folder);
  await cli.run('rpkg', 'propose', NAME);
  await writeFile(join(folder, 'a.yaml'), 'a: 1\n');
  const refused = await cli.run('rpkg', 'push', NAME, folder);
  expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining(`"sluice rpkg reject ${NAME}"`) });
  await cli.run('rpkg', 'reject', NAME);
  expect(await cli.run('rpkg', 'push', NAME, folder)).toMatchObject({ code: 0, stdout: `${NAME} pushed\n` });
});
