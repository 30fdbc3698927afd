import { execFileSync } from 'node:child_process';

const WATCH = `
  import { registerHooks } from 'node:module';
  const loaded = [];
  registerHooks({ load: (url, context, next) => { loaded.push(url); return next(url, context); } });
  process.on('exit', () => console.log(JSON.stringify(loaded)));
`;

/** The URLs of all modules that a module loads when it is imported, in a process of its own with this argument. */
export function loadedModules(module: URL, argument = ''): string[] {
  const start = `process.argv[2] = ${JSON.stringify(argument)}; process.send = () => true; await import('${module.href}'); process.exit()`;
  const watch = `data:text/javascript,${encodeURIComponent(WATCH)}`;
  const words = ['--import', watch, '--input-type=module', '-e', start];
  return JSON.parse(execFileSync(process.execPath, words, { encoding: 'utf8' })) as string[];
}
