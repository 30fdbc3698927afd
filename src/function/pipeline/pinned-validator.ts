import { posix } from 'node:path';
import type { PinnedValidator } from '../../package/model/policy/policy.ts';
import { sameValue } from '../../resource/object/same-value.ts';
import { completeImage, parseImageName } from '../catalog/image-name.ts';
import type { Resource } from '../resource/resource.ts';
import { isSelective } from '../resource/selection.ts';
import type { PipelineEntry } from './pipeline-step.ts';

/** Annotations about the place of a resource, not its content. */
const PLACE = /^(?:internal\.)?config\.kubernetes\.io\//;

/**
 * True if an entry of the pipeline is exactly the validator that a policy pins: its image, its configuration, and all resources of the
 * package. An entry with selectors or a condition, or in a nested package, could be made to skip resources.
 */
export function isPinned(
  rule: PinnedValidator,
  { of, list, fn }: PipelineEntry,
  config: Resource | undefined,
): boolean {
  const { name, image, tag, exec, when = '', configPath = '', configMap = {}, configRef } = fn;
  if (list !== 'validators' || of.path !== '' || image === undefined || image === '' || (exec ?? '') !== '')
    return false;
  if (isSelective(fn) || when !== '') return false;
  if (rule.function !== name && rule.function !== posix.basename(parseImageName(image).name)) return false;
  if (completeImage(image, tag) !== completeImage(rule.image, undefined)) return false;
  if (rule.config === undefined) {
    return configPath === '' && configRef === undefined && sameValue(configMap, rule.configMap ?? {});
  }
  return rule.configMap === undefined && config !== undefined && sameValue(withoutPlace(config.value), rule.config);
}

function withoutPlace(value: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const { metadata, ...rest } = value;
  if (metadata === null || typeof metadata !== 'object') return { ...value };
  const { annotations, ...others } = metadata as Record<string, unknown>;
  const kept = Object.entries(annotations ?? {}).filter(([key]) => !PLACE.test(key));
  return {
    ...rest,
    metadata: { ...others, ...(kept.length === 0 ? {} : { annotations: Object.fromEntries(kept) }) },
  };
}
