import type { OrderedResolver } from '../../../controllers/revision/arrange-resolvers.ts';
import { DELIVERABLE_TYPE } from '../../../controllers/revision/resolvers/deliverable/deliverability.ts';
import {
  CLUSTER_TYPE,
  DEPENDENCY_TYPES,
} from '../../../controllers/revision/resolvers/dependency/dependency-object.ts';
import { HEALTHY_TYPES } from '../../../controllers/revision/resolvers/healthy/target-health.ts';
import { IP_CLAIM_TYPES } from '../../../controllers/revision/resolvers/ipam/ip-claim.ts';

/** Name and claims of the resolvers that `sluice up` has, for parts that only report them. */
export const BUILT_IN_RESOLVERS: readonly OrderedResolver[] = [
  { name: 'deliverable', claims: [DELIVERABLE_TYPE] },
  { name: 'dependency', claims: [DEPENDENCY_TYPES, CLUSTER_TYPE] },
  { name: 'healthy', claims: [HEALTHY_TYPES] },
  { name: 'ipam', claims: [IP_CLAIM_TYPES] },
];
