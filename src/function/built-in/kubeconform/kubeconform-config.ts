import { isMap, isScalar } from 'yaml';
import type { ResourceList } from '../../model/function.ts';
import type { Resource } from '../../resource/resource.ts';
import { invalidConfig, textAt } from '../support/fields/function-config.ts';

export interface KubeconformConfig {
  readonly ignoreMissingSchemas: boolean;
  /** `Deployment` or `apps/v1/Deployment`. */
  readonly skipKinds: ReadonlySet<string>;
  readonly strict: boolean;
  /** Keys that have no effect here, for a warning. */
  readonly ignoredKeys: readonly string[];
}

const KEYS = ['schema_location', 'additional_schema_locations', 'ignore_missing_schemas', 'skip_kinds', 'strict'];

/** The schemas that the published images carry. */
const OWN_SCHEMAS = ['default', 'file:///jsonschema', '/jsonschema'];

/** All keys are optional. They are in `data`, or in the configuration itself. Throws InvalidInput for a value of another form. */
export function kubeconformConfig({ config }: ResourceList): KubeconformConfig {
  if (config === undefined)
    return { ignoreMissingSchemas: false, skipKinds: new Set(), strict: false, ignoredKeys: [] };
  const text = (key: string) => textAt(config, [key]) ?? textAt(config, ['data', key]) ?? '';
  const flag = (key: string) => flagOf(config, key, text(key));
  const locations = [text('schema_location'), text('additional_schema_locations')];
  const elsewhere = ['schema_location', 'additional_schema_locations'].filter((_, index) =>
    listOf(locations[index] ?? '').some((location) => !OWN_SCHEMAS.includes(location)),
  );
  return {
    ignoreMissingSchemas: flag('ignore_missing_schemas'),
    skipKinds: new Set(listOf(text('skip_kinds'))),
    strict: flag('strict'),
    ignoredKeys: [...elsewhere, ...unknownKeys(config)],
  };
}

function listOf(text: string): string[] {
  return text
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '');
}

function flagOf(config: Resource, key: string, text: string): boolean {
  const word = text.trim().toLowerCase();
  if (word === 'true' || word === '1') return true;
  if (word === 'false' || word === '0' || word === '') return false;
  throw invalidConfig(config, `${key} must be "true" or "false", not ${JSON.stringify(text.slice(0, 100))}`);
}

function unknownKeys(config: Resource): string[] {
  const data = config.node(['data']);
  if (!isMap(data)) return [];
  const keys = data.items.map(({ key }) => (isScalar(key) ? String(key.value) : ''));
  return keys.filter((key) => !KEYS.includes(key));
}
