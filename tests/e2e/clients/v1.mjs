// @modelcontextprotocol/sdk, the first TypeScript SDK: revisions up to 2025-11-25.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { plan, run } from "./session.mjs";

const client = new Client({ name: "e2e-v1", version: "1.0.0" });
const transport = plan.url ? new StreamableHTTPClientTransport(new URL(plan.url)) : new StdioClientTransport(plan);
// The client only tells the transport what was agreed on.
let agreed;
const tell = transport.setProtocolVersion?.bind(transport);
transport.setProtocolVersion = (version) => {
  agreed = version;
  tell?.(version);
};
await run(client, transport, () => agreed);
