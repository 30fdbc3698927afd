import { z } from 'zod';

/** A time that a server writes, RFC 3339. Null means no time, as clients written in Go send it. */
export const serverTimeSchema = z.string().nullish().meta({ format: 'date-time' });
