// @modelcontextprotocol/client, the second TypeScript SDK: finds out whether the server knows 2026-07-28.
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { plan, run } from "./session.mjs";

const client = new Client({ name: "e2e-v2", version: "1.0.0" }, { versionNegotiation: { mode: "auto" } });
const transport = plan.url ? new StreamableHTTPClientTransport(new URL(plan.url)) : new StdioClientTransport(plan);
await run(client, transport, () => client.getNegotiatedProtocolVersion());
