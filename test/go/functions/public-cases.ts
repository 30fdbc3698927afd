import { posix } from 'node:path';
import { type KptFunction, readKptfile } from '../../../kptfile-schema/index.ts';
import { parseImageName } from '../../../src/function/catalog/image-name.ts';
import { readResources } from '../../../src/function/resource/read-resources.ts';
import { Resource } from '../../../src/function/resource/resource.ts';
import { isKptfilePath } from '../../../src/package/merge/package-files.ts';
import { corpusMissing, corpusPackages } from '../../support/corpus.ts';
import type { ComparisonCase } from './comparison-cases.ts';

/** The pipeline entries of public packages that pin a version of a function, on the resources of their packages. */
export function publicCases(name: string, tag: string): ComparisonCase[] {
  if (corpusMissing !== false) return [];
  return corpusPackages().flatMap(({ name: packageName, files }) => {
    const texts = new Map([...files].filter(([path]) => isYaml(path)).map(([path, data]) => [path, data.toString()]));
    const { resources } = readResources(texts);
    return [...files].flatMap(([path, data]) => {
      const read = isKptfilePath(path) ? readKptfile(data) : undefined;
      if (read?.ok !== true) return [];
      const folder = posix.dirname(path) === '.' ? '' : `${posix.dirname(path)}/`;
      const entries = [...(read.kptfile.pipeline?.mutators ?? []), ...(read.kptfile.pipeline?.validators ?? [])];
      return entries.filter(pins(name, tag)).map(
        (entry): ComparisonCase => ({
          what: `the package ${packageName}, ${folder}${entry.configPath ?? 'configMap'}`,
          resources: resources
            .filter(({ file }) => file.startsWith(folder))
            .map((resource) => `${resource.toText().trimEnd()}\n`)
            .join('---\n'),
          ...configOf(entry, texts, folder),
        }),
      );
    });
  });
}

function pins(name: string, tag: string) {
  return ({ image = '' }: KptFunction): boolean => {
    const parsed = parseImageName(image);
    return parsed.name === name && parsed.tag === tag;
  };
}

function configOf({ configPath, configMap }: KptFunction, texts: ReadonlyMap<string, string>, folder: string) {
  if (configPath !== undefined) return { config: texts.get(folder + configPath) ?? '' };
  if (configMap === undefined) return {};
  const data = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'function-input' }, data: configMap };
  return { config: Resource.from(data).toText() };
}

function isYaml(path: string): boolean {
  return /\.ya?ml$/.test(path);
}
