import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';

/** A process of its own: what a process has loaded once, it finds from then on. */
test('an OpenPGP key without the optional package is refused with what to install', async () => {
  const program = `
    import { registerHooks } from 'node:module';
    // As after npm install --omit=optional: Node itself reports that it finds no such package.
    registerHooks({ resolve: (name, context, next) => next(name === 'openpgp' ? 'openpgp-left-out' : name, context) });
    const { openPgpSigner } = await import(${JSON.stringify(new URL('openpgp-signer.ts', import.meta.url))});
    await openPgpSigner('', undefined, { now: () => 0 }).catch(({ code, message }) => console.log(JSON.stringify({ code, message })));
  `;
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', program]);
  const manifest = readFileSync(new URL('../../../package.json', import.meta.url), 'utf8');
  const [, major] = /"openpgp": "\^(\d+)\./.exec(manifest) ?? [];
  expect(JSON.parse(stdout)).toEqual({
    code: 'Unavailable',
    message: expect.stringContaining(
      `package openpgp is not installed; install it beside Sluice with "npm install openpgp@${major}"`,
    ),
  });
});
