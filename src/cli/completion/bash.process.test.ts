import { execFileSync, spawnSync } from 'node:child_process';
import { readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { cliFixture, runCli } from '../testing.ts';

test('completion of bash is a script that bash reads, and completes', async () => {
  const { stdout } = await runCli(['completion', 'bash']);
  const complete = (line: string) =>
    execFileSync(
      'bash',
      [
        '-c',
        `${stdout}\nCOMP_WORDS=(${line}); COMP_CWORD=$(( \${#COMP_WORDS[@]} - 1 )); _sluice; echo "\${COMPREPLY[*]}"`,
      ],
      { encoding: 'utf8' },
    ).trim();
  expect(complete('sluice rp')).toBe('rpkg');
  expect(complete('sluice rpkg pro')).toBe('propose propose-delete');
  expect(complete('sluice rpkg get --life')).toBe('--lifecycle');
  expect(complete('sluice rpkg get -o n')).toBe('name');
  expect(complete('sluice rpkg get --lifecycle P')).toBe('Proposed Published');
  expect(complete('sluice rpkg get --lifecycle = P')).toBe('Proposed Published');
  expect(complete('sluice completion ""')).toBe('bash zsh fish');
  expect(complete('sluice rpkg get --name P')).toBe('');
  expect(complete('sluice up --log ""')).toBe('text json');
  expect(complete('sluice kptfile lint ""')).toBe('');
  expect(complete('sluice kptfile condition se')).toBe('set');
  expect(complete('sluice fn ev')).toBe('eval');
  expect(complete('sluice fn eval -t v')).toBe('validator');
  expect(complete('sluice fn render --image-pull-policy n')).toBe('never');
  expect(complete('sluice rpkg approve --kube')).toBe('--kubeconfig');
  expect(complete('sluice token create ci -o t')).toBe('token');
});

test('completion of bash offers names of revisions, repositories and functions, in a checkout also under npx', async () => {
  await using cli = await cliFixture();
  await cli.run('repo', 'reg', cli.bare('packages.git'));
  for (const name of ['web/shop', 'web/site', 'db'])
    await cli.run('rpkg', 'init', name, '--repository', 'packages', '--workspace', 'first');
  await cli.run('rpkg', 'propose', 'packages.db.first');
  await cli.run('rpkg', 'approve', 'packages.db.first');
  // A user who may push chooses branch names; a shell must not run them.
  cli.git('packages.git', 'update-ref', `refs/heads/drafts/web/$(touch\${IFS}hacked)/v1`, 'main');
  const { stdout } = await runCli(['completion', 'bash']);
  await writeFile(join(cli.folder, 'completion.bash'), stdout);
  const complete = (line: string, run = '_sluice', environment: NodeJS.ProcessEnv = { SLUICE_DATA: cli.data }) => {
    const script = `. ./completion.bash; COMP_WORDS=(${line}); COMP_CWORD=$(( \${#COMP_WORDS[@]} - 1 )); ${run}; echo "\${COMPREPLY[*]}"`;
    const { stdout: out, stderr } = spawnSync('bash', ['--norc', '-c', script], {
      ...{ encoding: 'utf8', cwd: cli.folder, env: { PATH: process.env.PATH, ...environment } },
    });
    expect(stderr).toBe('');
    return out.trim();
  };
  expect(complete('sluice rpkg approve packages.w')).toBe('packages.web.shop.first packages.web.site.first');
  expect(complete('sluice why packages.d')).toBe('packages.db.first');
  expect(complete('npx sluice why packages.d', '_sluice_npx')).toBe('packages.db.first');
  expect(complete('sluice repo get p')).toBe('packages');
  expect(complete('sluice rpkg init x --repository ""')).toBe('packages');
  expect(complete('sluice fn doc set-na')).toBe('set-name-prefix set-namespace');
  expect(complete('sluice fn eval -i apply-s')).toBe('apply-setters');
  expect(complete(`sluice why --data ${cli.data} packages.d`, '_sluice', {})).toBe('packages.db.first');
  // Nothing is there, or nothing answers: no names, and no errors in the shell.
  expect(complete('sluice why pack', '_sluice', { SLUICE_DATA: '/nonexistent' })).toBe('');
  expect(complete('sluice why pack', '_sluice', { KUBECONFIG: '/nonexistent/kubeconfig' })).toBe('');
  await writeFile(join(cli.data, 'objects.db'), 'broken');
  expect(complete('sluice why pack')).toBe('');
  expect(await readdir(cli.folder)).not.toContain('hacked');
});
