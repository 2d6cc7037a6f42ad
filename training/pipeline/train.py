"""pack/ -> teacher (fine-tuned on query-tool pairs, interpolated with its start) -> student (distilled, int8) -> OUT/student.npz
usage: train.py --pack DIR --base minilm_f16.npz --out DIR. About 8 minutes of one H200; --dry: a few steps on a few rows, to see that it runs (add --batch 16 on a CPU)."""
import argparse,json,lzma,os,random,time
import numpy as np, torch, torch.nn as nn, torch.nn.functional as F
from model import DEV,Encoder,teacher,student,rounded
ap=argparse.ArgumentParser(); A=ap.add_argument
A('--pack',default='pack'); A('--base',default='minilm_f16.npz'); A('--out',default='.'); A('--seed',type=int,default=1); A('--batch',type=int,default=768)
A('--teacher-steps',type=int,default=700); A('--teacher-lr',type=float,default=4e-5)
A('--steps',type=int,default=6200); A('--lr',type=float,default=3e-4); A('--sharpen',type=int,default=600); A('--natural',type=float,default=.65)
A('--rank',type=int,default=144); A('--ffn',type=int,default=1024); A('--dim',type=int,default=256); A('--dry',action='store_true'); A('--teacher-out',default='')
a=ap.parse_args(); T0=time.time()
def log(*x): print('[%.0fs]'%(time.time()-T0),*x,flush=True)
random.seed(a.seed); np.random.seed(a.seed); torch.manual_seed(a.seed); M=json.load(open(a.pack+'/meta.json')); PAD,CLS,SEP=M['pad'],M['cls'],M['sep']
torch.backends.cuda.matmul.allow_tf32=False
def table(name,n):
    L=np.load(f'{a.pack}/{name}.len.npy').astype(np.int64); s=np.frombuffer(lzma.decompress(open(f'{a.pack}/{name}.tok.xz','rb').read()),np.int16)
    t=np.full((len(L),n),PAD,np.int16); t[np.arange(n)[None]<L[:,None]]=s; return torch.from_numpy(t).to(DEV)
def chunked(f,t,k):
    """f over the rows of t in k groups of like length: less padding"""
    n=(t!=PAD).sum(1); o=torch.argsort(n); out=[]; inv=torch.empty_like(o); inv[o]=torch.arange(len(o),device=DEV)
    for ix in o.chunk(k): m=int(n[ix].max()); out.append(f(t[ix][:,:max(8,-(-m//8)*8)].long()))
    return torch.cat(out)[inv]
@torch.no_grad()
def embed_all(f,t,bs=16384): return torch.cat([chunked(f,t[i:i+bs],8) for i in range(0,len(t),bs)])
SETS={}
for n in M['sets']: z=np.load(f'{a.pack}/{n}.npz'); SETS[n]=dict(q=table(n+'.q',64),d=table(n+'.d',128),gold=z['gold'],ng=z['ng'],bm=z['bm'].astype(np.float32))
def metrics(S,s):
    o=np.argsort(-S,axis=1,kind='stable')[:,:100]; g=np.take_along_axis(s['gold'],o,1); first=np.where(g.any(1),g.argmax(1)+1,10**9)
    return float((g[:,:1].sum(1)/s['ng']).mean()),float((g[:,:5].sum(1)/s['ng']).mean()),float((1/first*(first<10**9)).mean())
def report(tag,m):
    """dev sets, alone and with words; returns the mean of R@5 + MRR/2 of both"""
    m.eval(); sc=0.; f=lambda x:m(x,PAD,torch.float32)
    for n,s in SETS.items():
        c=(embed_all(f,s['q'])@embed_all(f,s['d']).T).float().cpu().numpy(); p=metrics(c,s); h=metrics(s['bm']+80*c,s); sc+=(p[1]+p[2]/2+h[1]+h[2]/2)/2/len(SETS)
        log('   %-22s %-13s alone %.3f %.3f %.3f | bm+80cos %.3f %.3f %.3f'%((tag,n)+p+h))
    return sc
I=np.load(a.pack+'/index.npz'); QT,DT=table('q',64),table('d',128); rq,rd=np.load(a.pack+'/q.rank.npy'),np.load(a.pack+'/d.rank.npy')
dev=lambda x:torch.from_numpy(x).to(DEV)
qi,di,ni,xi=rq[I['q']],rd[I['d']],np.where(I['n']>=0,rd[I['n'].clip(0)],-1),rd[I['x']]; nat,key=I['natural'],I['k']; w=np.where(nat,a.natural,1.)*I['w'].astype(np.float64)
if a.dry: s=np.random.permutation(len(qi))[:60]; qi,di,ni,w,nat,key=[z[s] for z in(qi,di,ni,w,nat,key)]; xi=xi[:40]; u=np.unique(np.concatenate([di,ni[ni>=0],xi])); f=lambda z:np.where(z>=0,np.searchsorted(u,z.clip(0)),-1); di,ni,xi=f(di),f(ni),f(xi); v=np.unique(qi); qi=np.searchsorted(v,qi); QT,DT=QT[v],DT[u]; SETS={n:dict(s,q=s['q'][:5],gold=s['gold'][:5,:30],ng=s['ng'][:5],d=s['d'][:30],bm=s['bm'][:5,:30]) for n,s in SETS.items()}
qi,di,ni,xi,key,nat,w=map(dev,(qi.astype(np.int64),di.astype(np.int64),ni.astype(np.int64),xi.astype(np.int64),key.astype(np.int64),nat,w)); B=a.batch; log('loaded',len(qi),'examples',tuple(QT.shape),tuple(DT.shape),'natural share %.3f'%(w[nat].sum()/w.sum()).item())
y=torch.arange(B,device=DEV); eye=torch.eye(B,dtype=torch.bool,device=DEV)
def draw(cum): return torch.searchsorted(cum,torch.rand(B,device=DEV,dtype=torch.float64)).clamp_max(len(cum)-1)
class Rate:
    """linear warm-up, then linear decay to 2 %"""
    def __init__(s,opt,lr,steps,warm): s.o,s.lr,s.n,s.warm,s.k=opt,lr,steps,warm,0
    def step(s):
        s.k+=1
        for g in s.o.param_groups: g['lr']=s.lr*min(1,s.k/s.warm)*max(.02,1-s.k/s.n)
        return s.k<s.n
def adam(m,lr): return torch.optim.AdamW([dict(params=[p for p in m.parameters() if p.dim()>1],weight_decay=.01),dict(params=[p for p in m.parameters() if p.dim()<2],weight_decay=0.)],lr=lr,betas=(.9,.98),fused=DEV=='cuda')
def contrast(S,ix):
    """own tool against all others of the batch; other rows of the same tool don't count as wrong"""
    same=(key[ix][:,None]==key[ix][None])&~eye; S=torch.cat([S[:,:B].masked_fill(same,-1e4),S[:,B:]],1); return F.cross_entropy(S,y)+.5*F.cross_entropy(S[:,:B].T,y)
# ---- teacher
t=teacher(a.base,None,M['vocab']); base={k:v.clone() for k,v in t.state_dict().items()}; report('base',t)
opt=adam(t,a.teacher_lr); rate=Rate(opt,a.teacher_lr,a.teacher_steps,60); cum=torch.cumsum(w/w.sum(),0); t.train(); f=lambda z:t(z,PAD); s0=time.time()
while True:
    go=rate.step(); ix=draw(cum); hn=ni[ix]; hn=hn[hn>=0]; q=chunked(f,QT[qi[ix]],1); d=chunked(f,DT[torch.cat([di[ix],hn])],3); loss=contrast(q@d.T/.05,ix)
    opt.zero_grad(set_to_none=True); loss.backward(); nn.utils.clip_grad_norm_(t.parameters(),1.); opt.step()
    if rate.k%100==1 or not go: log('teacher',rate.k,'loss %.3f'%loss.item(),'%.3f s/step'%((time.time()-s0)/rate.k))
    if not go: break
ft={k:v.clone() for k,v in t.state_dict().items()}; best=(-1,0)
mix=lambda z:t.load_state_dict({k:base[k]*(1-z)+ft[k]*z for k in ft})
for z in (.5,.65,.8,1.): mix(z); best=max(best,(report('teacher %.2f'%z,t),z))
mix(best[1]); t.eval(); log('teacher chosen on dev',best)
if a.teacher_out: np.savez(a.teacher_out,**{k:v.cpu().numpy().astype(np.float16) for k,v in t.state_dict().items()})
# ---- its vectors, projected
QV,DV=embed_all(f,QT),embed_all(f,DT); G=QV[::2].T@QV[::2]+DV[::2].T@DV[::2]; P=torch.linalg.svd(G)[2][:a.dim].T.contiguous(); log('energy kept %.4f'%((QV@P).pow(2).sum()/QV.pow(2).sum()).item())
QV,DV=F.normalize(QV@P,dim=-1),F.normalize(DV@P,dim=-1); freq=(torch.bincount(QT.flatten().long(),minlength=M['vocab'])+torch.bincount(DT.flatten().long(),minlength=M['vocab'])).float(); freq[PAD]=0
m=student(t,[0,2,5],a.rank,a.ffn,P,freq)
def distil(tag,steps,lr,weight,mul,tau=.05):
    opt=adam(m,lr); rate=Rate(opt,lr,steps,min(200,steps//5+1)); cum=torch.cumsum(weight/weight.sum(),0); m.train(); g=lambda z:m(z,PAD); s0=time.time()
    while True:
        go=rate.step(); ix=draw(cum); hn=ni[ix]; hn=hn[hn>=0]; x=xi[torch.randint(len(xi),(B//2,),device=DEV)]; dd=torch.cat([di[ix],hn])
        e=chunked(g,torch.cat([F.pad(QT[qi[ix]],(0,64),value=PAD),DT[dd],DT[x]]),4); q=e[:B]; d=e[B:B+len(dd)]; qt,dt=QV[qi[ix]],DV[dd]
        l1=((1-(q*qt).sum(1)).mean()+(1-(d*dt).sum(1)).mean()+(1-(e[B+len(dd):]*DV[x]).sum(1)).mean())/3
        S=q@d.T/tau; l2=F.kl_div(F.log_softmax(S,1),F.softmax(qt@dt.T/tau,1),reduction='batchmean'); l3=contrast(S,ix); loss=mul[0]*l1+mul[1]*l2+mul[2]*l3
        opt.zero_grad(set_to_none=True); loss.backward(); nn.utils.clip_grad_norm_(m.parameters(),1.); opt.step()
        if rate.k%500==1 or not go: log(tag,rate.k,'cos %.3f kl %.3f nce %.3f'%(l1.item(),l2.item(),l3.item()),'%.3f s/step'%((time.time()-s0)/rate.k))
        if not go: break
# ---- near the teacher; then sharper on the natural queries; what ships is the mean of both
distil('student',a.steps,a.lr,w,(3.,1.,.5)); first={k:v.clone() for k,v in m.state_dict().items()}
distil('sharpen',a.sharpen,1e-4,torch.where(nat,w*2,w),(1.5,1.,1.5)); second=m.state_dict(); m.load_state_dict({k:(first[k]+second[k])/2 for k in first})
m.eval(); out=rounded(m); np.savez(a.out+'/student.npz',**out); log('score %.4f bytes %d'%(report('student int8',m),sum(v.nbytes for v in out.values())))
