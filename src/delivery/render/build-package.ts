import { ShareLimiter } from '../../foundation/concurrency/share-limiter.ts';
import { isSluiceError } from '../../foundation/sluice-error.ts';
import { ellipsize } from '../../foundation/text/shorten.ts';
import { type FolderProgramOptions, runOnFolder } from '../../function/external/folder-program.ts';
import { isExecutable } from '../../function/external/locate-program.ts';
import { pathProblem } from '../path-rules.ts';
import { PackageRefused, refusalOf } from '../refusal.ts';
import { MAX_PACKAGE_BYTES, type ManifestsOutcome, manifestsOf } from '../tree/manifests.ts';
import { checkKustomizations } from './check-kustomization.ts';
import { digestOf, KnownTimeouts } from './known-timeouts.ts';
import { passThrough } from './passthrough.ts';
import { kindOfPackage, type RenderMode } from './render-mode.ts';

/** The programs that the operator configured, with their limits. A target only selects whether they are used. */
export interface RenderPrograms {
  readonly kustomize?: FolderProgramOptions;
  readonly helm?: FolderProgramOptions;
}

export interface PackageToBuild {
  readonly files: ReadonlyMap<string, Uint8Array>;
  /** Path of the package in its repository; its last part is the name of the release of a chart. */
  readonly package: string;
  /** The namespace of the package. Programs run for all namespaces in turns. Default: one that all such packages share. */
  readonly namespace?: string;
}

export type BuildPackage = (source: PackageToBuild, render: RenderMode | undefined) => Promise<ManifestsOutcome>;

/** Programs that run at once: the server needs the processors too. */
const MAX_PROGRAMS = 2;
const MAX_PROGRAMS_OF_NAMESPACE = 1;
const MAX_WAITING_OF_NAMESPACE = 64;
/** The file that rendered objects are delivered in. */
const RENDERED = 'manifests.yaml';
const MAX_ERROR_CHARACTERS = 600;
const RELEASE_NAME = /^[a-z0-9]([a-z0-9-]{0,51}[a-z0-9])?$/;

/** True if the manifests of a package follow from its files without running a program. */
export function isBuiltFromFiles(files: ReadonlyMap<string, Uint8Array>, render: RenderMode = 'none'): boolean {
  if (render !== 'kustomize' && render !== 'helm') return true;
  return kindOfPackage(files).kind !== (render === 'helm' ? 'chart' : 'kustomization');
}

/** As `BuildPackage`, for packages of which `isBuiltFromFiles` is true. */
export function buildFromFiles(files: ReadonlyMap<string, Uint8Array>, render: RenderMode = 'none'): ManifestsOutcome {
  try {
    const { file } = render === 'passthrough' ? kindOfPackage(files) : {};
    if (file === undefined) return manifestsOf(files, render);
    return { manifests: passThrough(files, file) };
  } catch (error) {
    return { refused: refusalOf(error) };
  }
}

/** Creates the function that makes the manifests of packages for targets. */
export function packageBuilder(programs: RenderPrograms): BuildPackage {
  const limiter = new ShareLimiter({
    maxRunning: MAX_PROGRAMS,
    maxRunningOfShare: MAX_PROGRAMS_OF_NAMESPACE,
    maxWaitingOfShare: MAX_WAITING_OF_NAMESPACE,
  });
  const timeouts = new KnownTimeouts();
  return async ({ files, package: path, namespace = '' }, render = 'none') => {
    if (isBuiltFromFiles(files, render)) return buildFromFiles(files, render);
    const program = render === 'helm' ? programs.helm : programs.kustomize;
    if (program === undefined) {
      const message = `cannot render the package: the server has no ${render} program; start it with --${render} <path of the program>`;
      // The next process may have it.
      return { refused: { reason: 'RendererMissing', message }, isTemporary: true };
    }
    try {
      if (render === 'kustomize') checkKustomizations(files);
      const source = withoutKptfiles(files);
      const digest = digestOf(render, path, source);
      const run = () =>
        limiter.run(`namespace ${namespace}`, async () => {
          // Another one that waited may have found it meanwhile.
          timeouts.check(digest, program.clock.monotonic());
          try {
            return await runProgram(render, program, source, path);
          } catch (error) {
            if (isSluiceError(error, 'Timeout')) timeouts.add(digest, error.message, program.clock.monotonic());
            throw error;
          }
        });
      const text = await run();
      // Each rendering of random values would be another commit.
      if (render === 'helm' && (await run()) !== text)
        throw new PackageRefused(
          'RenderFailed',
          'helm renders other manifests each time; remove random values from the chart',
        );
      return manifestsOf(new Map([[RENDERED, new TextEncoder().encode(text)]]));
    } catch (error) {
      // An error of the system, such as a full disk, says nothing about the package.
      const isExpected = error instanceof PackageRefused || isSluiceError(error);
      const isMissing = error instanceof PackageRefused && error.reason === 'RendererMissing';
      const isTemporary =
        !isExpected || isMissing || isSluiceError(error, 'Timeout') || isSluiceError(error, 'Unavailable');
      return { refused: refusalOf(error), ...(isTemporary ? { isTemporary } : {}) };
    }
  };
}

async function runProgram(
  render: RenderMode,
  program: FolderProgramOptions,
  files: ReadonlyMap<string, Uint8Array>,
  path: string,
): Promise<string> {
  const release = path.slice(path.lastIndexOf('/') + 1);
  if (render === 'helm' && !RELEASE_NAME.test(release))
    throw new PackageRefused(
      'RenderFailed',
      `${JSON.stringify(release)} cannot be the name of a Helm release; rename the package`,
    );
  for (const name of files.keys()) {
    // Another spelling of a path could leave the temporary folder.
    const problem = pathProblem(name);
    if (problem !== undefined) throw new PackageRefused('InvalidPath', `path ${JSON.stringify(name)} ${problem}`);
  }
  if (!(await isExecutable(program.program))) throw rendererMissing(render, `${program.program} is no executable file`);
  const limits = { ...program, outputBytes: MAX_PACKAGE_BYTES };
  const { exitCode, stdout, stderr } = await runOnFolder(limits, files, (folder) =>
    render === 'helm'
      ? ['template', release, folder, '--include-crds', '--no-hooks', '--skip-tests']
      : ['build', folder, '--load-restrictor', 'LoadRestrictionsRootOnly'],
  );
  if (exitCode === 0) return stdout;
  // A script without its interpreter, for example: the program that sets the limits starts it.
  if (/^prlimit: failed to execute /.test(stderr)) throw rendererMissing(render, shortened(stderr));
  throw new PackageRefused('RenderFailed', `${render} failed: ${shortened(stderr) || `exit code ${exitCode}`}`);
}

function rendererMissing(render: RenderMode, why: string): PackageRefused {
  const message = `cannot render the package: ${why}; name a program with --${render} when the server starts`;
  return new PackageRefused('RendererMissing', message);
}

/** Neither program reads them, and a chart would contain them as files. */
function withoutKptfiles(files: ReadonlyMap<string, Uint8Array>): Map<string, Uint8Array> {
  return new Map([...files].filter(([path]) => path !== 'Kptfile' && !path.endsWith('/Kptfile')));
}

/** One line without the temporary folder, whose name differs each time. */
function shortened(text: string): string {
  const line = text
    .replace(/\/\S*?sluice-exec-[^/\s'"]+(?:\/package)?\/?/g, '')
    .replace(/[\p{Cc}\p{Cf}\u2028\u2029\s]+/gu, ' ')
    .trim();
  return ellipsize(line, MAX_ERROR_CHARACTERS);
}
