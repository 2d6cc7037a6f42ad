"""Public repositories (SOURCES.md), each cloned bare to DIR/owner+name/repo -> raw.json: tools, (query, tool) pairs, unlabelled texts.
usage: build_data.py DIR raw.json"""
import json, os, re, subprocess, random, csv, io, collections, hashlib, sys
random.seed(7)
M,OUT=sys.argv[1:3]
def ls(repo,under=''):
    o=subprocess.run(['git','-C',f'{M}/{repo}/repo','ls-tree','-r','-l','HEAD']+([under] if under else []),capture_output=True,text=True).stdout
    r=[]
    for l in o.splitlines():
        a,p=l.split('\t',1); f=a.split()
        if f[3].isdigit(): r.append((p,f[2],int(f[3])))
    return r
def show(repo,path):
    return subprocess.run(['git','-C',f'{M}/{repo}/repo','show','HEAD:'+path],capture_output=True).stdout.decode('utf8','replace')
def cat_many(repo,shas):
    p=subprocess.Popen(['git','-C',f'{M}/{repo}/repo','cat-file','--batch'],stdin=subprocess.PIPE,stdout=subprocess.PIPE)
    import threading
    threading.Thread(target=lambda:(p.stdin.write(('\n'.join(shas)+'\n').encode()),p.stdin.close()),daemon=True).start()
    for _ in shas:
        h=p.stdout.readline().split()
        if len(h)<3: yield ''; continue
        b=p.stdout.read(int(h[2])); p.stdout.read(1); yield b.decode('utf8','replace')
def clean(s,n=600):
    s=re.sub(r'<[^>]{1,80}>',' ',s or ''); s=re.sub(r'\[([^\]]*)\]\([^)]*\)',r'\1',s); s=re.sub(r'https?://\S+',' ',s)
    return re.sub(r'\s+',' ',s).strip()[:n]
tools=[]; pairs=[]; texts=[]; key={}
def tool(server,name,desc,params=(),src=''):
    server,name,desc=str(server),str(name),desc if isinstance(desc,str) else json.dumps(desc)
    k=(server,name,desc[:80])
    if k in key: return key[k]
    key[k]=len(tools); tools.append(dict(id=len(tools),server=server,name=name,desc=clean(desc),params=[(clean(str(a),40),clean(str(b),120)) for a,b in params][:12],src=src)); return key[k]
def pair(q,ids,src):
    q=clean(q,500)
    if len(q)>=8 and ids: pairs.append(dict(q=q,t=sorted(set(ids)),src=src))
# --- docker/mcp-registry (MIT): real MCP servers' tool lists
fs=[f for f in ls('docker+mcp-registry') if f[0].endswith('tools.json')]
for (p,s,_),txt in zip(fs,cat_many('docker+mcp-registry',[f[1] for f in fs])):
    try: d=json.loads(txt)
    except Exception: continue
    sv=p.split('/')[1]
    for t in d:
        try: tool(sv,t['name'],t.get('description') or '',[(a['name'],a.get('desc','') or '') for a in t.get('arguments') or []],'docker')
        except Exception: pass
print('docker',len(tools))
# --- awesome-mcp-servers (MIT)
for l in show('punkpeye+awesome-mcp-servers','README.md').splitlines():
    m=re.match(r'- \[([^\]]+)\]\(https://github.com[^)]*\)(.*?) [-–] (.+)$',l)
    if m:
        d=clean(re.sub(r'\[!\[.*?\]\(.*?\)\]\(.*?\)','',m.group(3)),300); texts.append(d)
        nm=m.group(1).split('/')[-1]
        ss=re.split(r'(?<=[.!])\s+',d)
        if len(ss)>1 and len(ss[0])>25 and len(' '.join(ss[1:]))>30: pairs.append(dict(q=ss[0],t=[tool(nm,nm,' '.join(ss[1:]),(),'awesome')],src='awesome'))
print('awesome',len(tools),len(pairs))
# --- OpenAPI directory (CC0): summary <-> operationId + description + parameters
fs=[f for f in ls('APIs-guru+openapi-directory') if re.search(r'(openapi|swagger)\.yaml$',f[0]) and f[2]<1_200_000]
by=collections.defaultdict(list)
for f in fs: by['/'.join(f[0].split('/')[:-2])].append(f)
latest=[sorted(v)[-1] for v in by.values()]
prov=collections.defaultdict(list)
for f in latest: prov[f[0].split('/')[1]].append(f)
sel=[]
for k,v in prov.items(): random.shuffle(v); sel+=v[:70]
sel.sort()
def scalar(lines,i,ind):
    v=lines[i].split(':',1)[1].strip(); buf=[]
    if v in ('|','>','|-','>-','|+','>+') or v=='':
        j=i+1
        while j<len(lines) and (not lines[j].strip() or len(lines[j])-len(lines[j].lstrip())>ind): buf.append(lines[j].strip()); j+=1
        return ' '.join(buf)
    j=i+1
    while j<len(lines) and lines[j].strip() and len(lines[j])-len(lines[j].lstrip())>ind: buf.append(lines[j].strip()); j+=1
    v=' '.join([v]+buf)
    if v[:1] in '"\'' : v=v[1:].rstrip('"\'')
    return v.replace('\\n',' ').replace('\\"','"')
nops=0
for (p,s,_),txt in zip(sel,cat_many('APIs-guru+openapi-directory',[f[1] for f in sel])):
    sv=p.split('/'); sv=sv[1] if len(sv)<5 else sv[1]+' '+sv[2]
    lines=txt.split('\n'); 
    try: i=lines.index('paths:')
    except ValueError: continue
    m=re.search(r'^  title: (.+)$',txt,re.M); title=m.group(1).strip('"\' ') if m else sv
    ops=[]; cur=None; path=''; j=i+1
    while j<len(lines):
        l=lines[j]; ind=len(l)-len(l.lstrip())
        if l.strip() and ind==0: break
        if ind==2 and l.rstrip().endswith(':'): path=l.strip().strip(':"\'')
        elif ind==4 and re.match(r'    (get|put|post|delete|patch|head|options):',l):
            cur=dict(m=l.strip(':\n '),path=path,p=[]); ops.append(cur)
        elif cur is not None and ind==6:
            k=l.strip().split(':')[0]
            if k in ('summary','description','operationId'): cur[k]=scalar(lines,j,6)
            cur['_in']=k
        elif cur is not None and cur.get('_in')=='parameters' and ind>=8:
            t=l.strip().lstrip('- ')
            if t.startswith('name:') and ind<=10: cur['p'].append([t[5:].strip(),''])
            elif t.startswith('description:') and cur['p'] and ind<=10: cur['p'][-1][1]=scalar(lines,j,ind)
        j+=1
    random.shuffle(ops)
    for o in ops[:50]:
        su=clean(o.get('summary',''),200); de=clean(o.get('description',''),400); oid=o.get('operationId') or (o['m']+' '+re.sub(r'[{}]','',o['path']))
        oid=oid.strip('"\'')
        if not (su or de): continue
        nops+=1
        if su and de and su.lower().strip('.')!=de.lower().strip('.') and not de.lower().startswith(su.lower()) and len(su.split())>=3:
            pair(su,[tool(title[:40],oid,de,o['p'],'openapi')],'openapi')
        else: tool(title[:40],oid,de or su,o['p'],'openapi')
print('openapi',len(sel),nops,len(tools),len(pairs),flush=True)
# --- StableToolBench solvable queries / ToolBench (Apache-2.0)
for r,under in (('zhichengg+StableToolBench','solvable_queries/test_instruction'),('OpenBMB+ToolBench','data_example/instruction')):
    for p,_,_ in ls(r,under):
        if not p.endswith('.json'): continue
        try: d=json.loads(show(r,p))
        except Exception: continue
        for x in d:
            ids={}
            for a in (x.get('api_list') or [] if isinstance(x,dict) else []):
                ids[(a['tool_name'],a['api_name'])]=tool(a['tool_name'],a['api_name'],a.get('api_description') or '',[(q['name'],q.get('description','')) for q in a.get('required_parameters',[])+a.get('optional_parameters',[])],'toolbench')
            rel=[ids[tuple(z)] for z in (x.get('relevant APIs',[]) if isinstance(x,dict) else []) if tuple(z) in ids]
            rel and pair(x['query'],rel,'toolbench')
print('toolbench',len(tools),len(pairs))
# --- AnyTool bench (Apache-2.0): query -> names only, use where known
bn={(t['server'],t['name']):t['id'] for t in tools if t['src']=='toolbench'}
for x in json.loads(show('dyabel+AnyTool','atb_data/anytoolbench.json')):
    texts.append(clean(x['query'],400))
    ids=[bn[k] for a in x['gt_api_list'] if (k:=(a['tool_name'],a['api_name'])) in bn]
    if len(ids)==len(x['gt_api_list']): pair(x['query'],ids,'anytool')
# --- Seal-Tools (Apache-2.0)
sid={}
for l in show('fairyshine+Seal-Tools','Seal-Tools_Dataset/tool.jsonl').splitlines():
    t=json.loads(l); sid[t['api_name']]=tool(t['field'].split('/')[-1],t['api_name'],t['api_description'],[(k,v.get('description','')) for k,v in t['parameters'].items()],'seal')
for f in ('dev','test_in_domain','test_out_domain'):
    for l in show('fairyshine+Seal-Tools',f'Seal-Tools_Dataset/{f}.jsonl').splitlines():
        x=json.loads(l); pair(x['query'],[sid[c['api']] for c in x['calling'] if c['api'] in sid],'seal')
print('seal',len(tools),len(pairs))
# --- ToolAlpaca (Apache-2.0)
for f in ('eval_simulated','eval_real'):
    for a in json.loads(show('tangqiaoyu+ToolAlpaca',f'data/{f}.json')):
        ids={}
        for m in re.finditer(r'\d+\. Name: (\S+)\n\s+Description: (.*?)\n\s+Input: (.*?)\n',a.get('Functions','') or ''):
            try: ps=[(k,v) for k,v in json.loads(m.group(3)).items()]
            except Exception: ps=[]
            ids[m.group(1)]=tool(a['Name'],m.group(1),m.group(2),ps,'toolalpaca')
        for q,g in zip(a.get('Instructions') or [],a.get('Golden_Answers') or []):
            pair(q,[ids[c['Action']] for c in g if c.get('Action') in ids],'toolalpaca')
_pa=json.loads(show('tangqiaoyu+ToolAlpaca','data/public_apis.json'))
for a in (_pa if isinstance(_pa,list) else [y for v in _pa.values() for y in (v if isinstance(v,list) else [v])]):
    if isinstance(a,dict) and a.get('Description') and a.get('Introduction'): pair(a['Description'],[tool(a['Name'],a['Name'],a['Introduction'],(),'toolalpaca')],'toolalpaca-api')
print('toolalpaca',len(tools),len(pairs))
# --- TaskBench (MIT, microsoft/JARVIS): requests as text; tool lists
for dd in ('dailylifeapis','multimedia','huggingface'):
    for n in json.loads(show('microsoft+JARVIS',f'taskbench/data_{dd}/tool_desc.json'))['nodes']:
        tool(dd,n['id'],n.get('desc') or '',[(q['name'],q.get('desc','')) for q in n.get('parameters',[])],'taskbench')
    for l in show('microsoft+JARVIS',f'taskbench/data_{dd}/user_requests.json').splitlines():
        try: texts.append(clean(json.loads(l)['user_request'],400))
        except Exception: pass
# --- Gorilla APIBench + API zoo (Apache-2.0)
for f in ('torchhub_train','torchhub_eval','tensorflow_eval','huggingface_eval'):
    for l in show('ShishirPatil+gorilla',f'data/apibench/{f}.json').splitlines():
        try: x=json.loads(l)
        except Exception: continue
        a=x.get('api_data') or {}
        m=re.search(r"'Instruction': (.*?), 'Output'",x.get('code','')) or re.search(r"###Instruction: (.*?)\n",x.get('code',''))
        if m and a.get('functionality'):
            pair(m.group(1),[tool(a.get('domain',''),a['functionality'],a.get('description',a['functionality']),(),'gorilla')],'gorilla')
for p,_,sz in ls('ShishirPatil+gorilla','data/apizoo'):
    try: d=json.loads(show('ShishirPatil+gorilla',p))
    except Exception: continue
    for x in d if isinstance(d,list) else []:
        try:
            fn=x.get('functionality') or ''; ds=x.get('description') or ''; nm=x.get('api_name') or x.get('api_call','')[:60]
            if fn and ds and fn!=ds: pair(fn,[tool(x.get('user_name','')[:0]+os.path.basename(p)[:-5],nm,ds,[(k,'') for k in (x.get('api_arguments') or {})][:8] if isinstance(x.get('api_arguments'),dict) else (),'apizoo')],'apizoo')
        except Exception: pass
print('gorilla',len(tools),len(pairs))
# --- API-Pack (CC BY 4.0)
for p,_,_ in ls('zguo0525+API-Pack'):
    if 'instruction_files_cleaned' in p and p.endswith('.json') and 'checkpoint' not in p or 'validation_data' in p and p.endswith('.json'):
        try: d=json.loads(show('zguo0525+API-Pack',p))
        except Exception: continue
        for x in d if isinstance(d,list) else []:
            for c in (x.get('instruction_candidates') or [])[:3]:
                it=c.get('input_text') or ''
                m=re.search(r'Functionality: (.*?)\nDescription: (.*?)\nEndpoint: (.*?)\nAPI: (.*)',it,re.S)
                if m: pair(c['candidate'],[tool(m.group(4)[:40],m.group(3),m.group(2) or m.group(1),(),'apipack')],'apipack')
print('apipack',len(tools),len(pairs))
# --- API-Bank (MIT): tool list
for r in csv.DictReader(io.StringIO(show('AlibabaResearch+DAMO-ConvAI','api-bank/data/all_apis.csv'))):
    m=re.search(r'description = "(.*?)"\n',r.get('api_info') or '')
    if m: tool('api-bank',r['类名'],m.group(1),(),'apibank')
# --- tldr pages (CC BY 4.0): example description -> command page
fs=[f for f in ls('tldr-pages+tldr') if re.match(r'pages/(common|linux)/.*\.md',f[0])]
for (p,s,_),txt in zip(fs,cat_many('tldr-pages+tldr',[f[1] for f in fs])):
    cmd=os.path.basename(p)[:-3]
    dsc=' '.join(l[2:] for l in txt.splitlines() if l.startswith('> ') and 'More information' not in l and 'See also' not in l)
    ex=[re.sub(r'[\[\]]','',l[2:].rstrip(':')) for l in txt.splitlines() if l.startswith('- ')]
    if dsc and len(ex)>=3:
        t=tool('shell',cmd,dsc+' '+'; '.join(ex[1::2])[:200],(),'tldr')
        for e in ex[0::2][:3]: pair(e,[t],'tldr')
print('tldr',len(tools),len(pairs))
# --- CLINC150 (CC BY 3.0): utterance -> intent name
d=json.loads(show('clinc+oos-eval','data/data_full.json'))
for sp in ('train','val','test'):
    for u,i in d[sp]:
        texts.append(u)
        if random.random()<.35: pair(u,[tool('assistant',i,i.replace('_',' '),(),'clinc')],'clinc')
# --- self-instruct (Apache-2.0): general instructions as text
for p,_,sz in ls('yizhongw+self-instruct','data'):
    if sz<3e6 and ('seed_tasks' in p or 'gpt3_generations' in p):
        for l in show('yizhongw+self-instruct',p).splitlines():
            try: texts.append(clean(json.loads(l).get('instruction',''),300))
            except Exception: pass
# --- Activepieces (MIT outside ee/): action name/displayName/description <-> aiMetadata.description
fs=[f for f in ls('activepieces+activepieces','packages/pieces') if re.search(r'/(actions?|triggers?)/.*\.ts$',f[0]) or re.search(r'src/lib/.*\.ts$',f[0])]
q1=r"(?:'((?:[^'\\\\]|\\\\.)*)'|\"((?:[^\"\\\\]|\\\\.)*)\"|`([^`]*)`)"
def lit(k,t,start=0):
    m=re.compile(k+r':\s*'+q1).search(t,start)
    return (next(g for g in m.groups() if g is not None).replace("\\\\'","'").replace('&#x27;',"'") if m else '')
nap=0
for (p,s,_),txt in zip(fs,cat_many('activepieces+activepieces',[f[1] for f in fs])):
    for m in re.finditer(r'create(?:Action|Trigger)\(\{',txt):
        b=txt[m.end():m.end()+2500]; head=b.split('props:')[0]
        nm=lit(r'\bname',head); dn=lit('displayName',head); ds=lit(r'\bdescription',head.split('aiMetadata')[0]); ai=''
        if 'aiMetadata' in head: ai=lit(r'\bdescription',head[head.index('aiMetadata'):])
        if not nm: continue
        sv=re.search(r'pieces/(?:community/|core/|custom/)?([^/]+)/',p).group(1)
        ps=[(x.group(1),x.group(2)) for x in re.finditer(r"(\w+): Property\.\w+\(\{\s*displayName: '([^']*)'",b)][:10]
        if ai:
            t=tool(sv,nm,ai,ps,'activepieces'); nap+=1
            if ds: pair(ds,[t],'activepieces')
            if dn and len(dn.split())>=2: pair(dn+' '+sv,[t],'activepieces-dn')
            t2=tool(sv,nm,ds or dn,ps,'activepieces2')
            pair(re.split(r'(?<=[.;])\s',ai)[0],[t2],'activepieces-ai')
        else:
            t=tool(sv,nm,ds,ps,'activepieces')
            if dn and ds and dn.lower()!=ds.lower().strip('.') and len(dn.split())>=3: pair(dn,[t],'activepieces-dn')
print('activepieces',len(fs),nap,len(tools),len(pairs),flush=True)
# --- mcpm registry (MIT)
fs=[f for f in ls('pathintegral-institute+mcpm.sh','mcp-registry/servers') if f[0].endswith('.json')]
for (p,s,_),txt in zip(fs,cat_many('pathintegral-institute+mcpm.sh',[f[1] for f in fs])):
    try: d=json.loads(txt)
    except Exception: continue
    ids=[]
    for t in d.get('tools') or []:
        if isinstance(t,dict) and t.get('name'):
            pr=((t.get('inputSchema') or {}).get('properties') or {}) if isinstance(t.get('inputSchema'),dict) else {}
            ids.append(tool(d['name'],t['name'],t.get('description') or '',[(k,(v or {}).get('description','') if isinstance(v,dict) else '') for k,v in pr.items()],'mcpm'))
    sv=tool(d['name'],d.get('display_name') or d['name'],d.get('description') or '',(),'mcpm-server')
    for e in d.get('examples') or []:
        if isinstance(e,dict) and e.get('prompt'): pair(e['prompt'],[sv],'mcpm-example'); texts.append(clean(e['prompt'])); texts.append(clean(e.get('description') or ''))
print('mcpm',len(tools),len(pairs),flush=True)
# --- banking77 (CC BY 4.0)
for r in csv.DictReader(io.StringIO(show('PolyAI-LDN+task-specific-datasets','banking_data/train.csv'))):
    texts.append(r['text'])
    if random.random()<.2: pair(r['text'],[tool('bank support',r['category'],r['category'].replace('_',' '),(),'banking77')],'banking77')
# --- Open English WordNet (CC BY 4.0): members <-> gloss
nw=0
for p,_,sz in ls('globalwordnet+english-wordnet','src/yaml'):
    if not re.search(r'/(verb|noun\.(act|artifact|attribute|cognition|communication|event|possession|process|quantity|relation|time|group|location|object|state|food|person))\.',p): continue
    for blk in re.split(r'\n(?=\d{8}-\w:)',show('globalwordnet+english-wordnet',p)):
        m=re.search(r'definition:\n  - (.*(?:\n    .*)*)',blk); g=re.search(r'members:\n((?:  - .*\n?)+)',blk)
        if not(m and g): continue
        mem=[x[4:].strip("'\" ") for x in g.group(1).splitlines()]; de=clean(m.group(1).strip("'\""),200)
        ex=re.search(r'example:\n  - (.*)',blk)
        if 'verb' in p or (len(mem)>1 and random.random()<.5):
            nw+=1; pairs.append(dict(q=', '.join(mem[:4]),t=[tool('wordnet','',de,(),'wordnet')],src='wordnet'))
            if ex and 'verb' in p: texts.append(clean(ex.group(1),200))
print('wordnet',nw,len(tools),len(pairs),flush=True)
print('all',len(tools),len(pairs),len(texts),flush=True)
json.dump([tools,pairs,texts],open(OUT,'w'))
