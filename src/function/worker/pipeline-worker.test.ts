import { execFileSync } from 'node:child_process';
import { expect, test } from 'vitest';

const WATCH = `
  import { registerHooks } from 'node:module';
  const loaded = [];
  registerHooks({ load: (url, context, next) => { loaded.push(url); return next(url, context); } });
  process.on('exit', () => console.log(JSON.stringify(loaded)));
`;
const PROGRAM = new URL('./pipeline-worker.ts', import.meta.url).href;

test('a worker starts without the code that few pipelines need', () => {
  const watch = `data:text/javascript,${encodeURIComponent(WATCH)}`;
  const start = `process.argv[2] = '{"parent":${process.pid},"packs":[]}'; process.send = () => true; await import('${PROGRAM}'); process.exit()`;
  const output = execFileSync(process.execPath, ['--import', watch, '--input-type=module', '-e', start], {
    encoding: 'utf8',
  });
  const loaded = JSON.parse(output) as string[];
  expect(loaded).toContain(PROGRAM);
  expect(
    loaded.filter((url) => /bufbuild|re2js|function\/starlark|resource\/schema|kubernetes-types/.test(url)),
  ).toEqual([]);
});
